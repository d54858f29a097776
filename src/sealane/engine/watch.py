"""What an engine tells whoever looks after it."""

from __future__ import annotations

from collections.abc import Callable

from sealane.log import get_log

log = get_log("sealane.engine")


def _log_crash(task: str, error: BaseException) -> None:
    log.error("a task crashed", task=task, exc_info=error)


def _nobody_measures(commits: int, group_bytes: int, seconds: float, sync_seconds: float) -> None:
    pass


class EngineWatch:
    """Callbacks, on the loop that the engine belongs to. Until somebody listens, crashes are logged."""

    __slots__ = ("committed", "crashed", "failed")

    def __init__(self) -> None:
        self.crashed: Callable[[str, BaseException], None] = _log_crash
        """A background task met what nobody expected, and goes on: its name, and the error."""
        self.failed: Callable[[str, BaseException], None] = _log_crash
        """So did one after which the engine may not go on; `failure` says so too."""
        self.committed: Callable[[int, int, float, float], None] = _nobody_measures
        """A group is durable: its commits, about its bytes, the seconds it took, and those of them for the sync."""
