"""What is to happen at a step of a write: a file for each step, taken away by who does it, so that it happens once.

The job's processes are many, and some are started by Java: they find the plan by the environment, which all inherit.
"""

from __future__ import annotations

import os
import signal
import time
from enum import StrEnum
from pathlib import Path

DIRECTORY = "SEALANE_TEST_PLAN"
GROUP = "SEALANE_TEST_GROUP"
HELD_SECONDS_MAX = 240.0
LOOK_SECONDS = 0.01


class Step(StrEnum):
    """Where in a write something can happen, in the order in which a write comes by."""

    BEFORE_STAGING = "before-staging"
    BETWEEN_STAGES = "between-stages"
    AFTER_STAGING = "after-staging"
    BEFORE_PUBLISHING = "before-publishing"
    AFTER_PUBLISHING = "after-publishing"
    AFTER_THE_COMMIT_LOG = "after-the-commit-log"


class Deed(StrEnum):
    """What happens there."""

    KILL_DRIVER = "kill-driver"
    KILL_EXECUTOR = "kill-executor"
    HOLD = "hold"


WRITING = (Step.BEFORE_STAGING, Step.BETWEEN_STAGES, Step.AFTER_STAGING)
"""The steps that an executor takes."""


class Plan:
    """`kind` is the write that is meant: `batch` or `stream`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    @classmethod
    def of_this_job(cls) -> Plan:
        return cls(Path(os.environ[DIRECTORY]))

    def add(self, kind: str, deed: Deed, step: Step) -> None:
        self._file(kind, deed, step).touch()

    def left(self) -> list[str]:
        """What has not happened yet."""
        return sorted(path.name for path in self.directory.iterdir() if path.suffix != ".said")

    def come_by(self, kind: str, step: Step) -> None:
        """Called by the job: returns, or does not."""
        for deed in Deed:
            if self._take(self._file(kind, deed, step)):
                _do(deed, self)

    def hold(self) -> None:
        """Say that the job has come here, and wait until it may go on."""
        (self.directory / "held.said").touch()
        self._wait_for("go.said")

    def wait_until_held(self) -> None:
        self._wait_for("held.said")

    def let_go(self) -> None:
        (self.directory / "go.said").touch()

    def _wait_for(self, name: str) -> None:
        deadline = time.monotonic() + HELD_SECONDS_MAX
        while not (self.directory / name).exists():
            assert time.monotonic() < deadline, f"{name} was not said within {HELD_SECONDS_MAX:g} s"
            time.sleep(LOOK_SECONDS)

    def _file(self, kind: str, deed: Deed, step: Step) -> Path:
        return self.directory / f"{kind} {deed} {step}"

    @staticmethod
    def _take(path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True


def _do(deed: Deed, plan: Plan) -> None:
    if deed is Deed.HOLD:
        plan.hold()
    elif deed is Deed.KILL_EXECUTOR:
        os.kill(os.getpid(), signal.SIGKILL)
    else:
        # The driver's Python and Java are one group; its workers have groups of their own, and end when Java has.
        os.killpg(int(os.environ[GROUP]), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
