"""From a command to its node: which one is meant, how it is reached, and how a command ends."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import typer

from sealane.cli.group import EXIT_INTERRUPTED
from sealane.errors import InvalidArgument, Unavailable

if TYPE_CHECKING:
    from sealane.client import Lane

T = TypeVar("T")

DEFAULT_DATA = Path("sealane-data")
CONNECT_SECONDS = 5.0
"""How long a command looks for an answer; a person waits for it."""


def find_node(url: str | None, data: Path) -> str:
    """Where the node is: `url`, then `SEALANE_URL`, then the data directory, then the user's profile.

    Raises `Unavailable` with what to do when none of them tells.
    """
    given = url or os.environ.get("SEALANE_URL")
    if given:
        return given
    here = _in_data_directory(data)
    if here.url is not None:
        return here.url
    profiled = _in_profile()
    if profiled is not None:
        return profiled
    raise Unavailable(f"{here.problem}: start one with `sealane up --insecure`, or give --url")


def node_of(data: Path) -> str:
    """Where the node is that runs on this data directory. Raises `Unavailable` if none does."""
    here = _in_data_directory(data)
    if here.url is None:
        raise Unavailable(here.problem)
    return here.url


class _Found(NamedTuple):
    """What a data directory tells of its node."""

    url: str | None = None
    problem: str = "no node found"


def _in_data_directory(data: Path) -> _Found:
    from sealane.server.notices import read_node_notice

    notice = read_node_notice(data)
    if notice is None:
        return _Found()
    if not _is_running(notice.pid):
        return _Found(problem=f"no node found (that of {str(data)!r}, process {notice.pid}, has ended)")
    address = notice.doors.get("native")
    if address is None:
        return _Found(problem=f"no node found (that of {str(data)!r} has no native door)")
    return _Found(f"{'sealane' if notice.insecure else 'sealanes'}://{address}")


def _is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def profile_path() -> Path:
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "sealane" / "profile.yaml"


def _in_profile() -> str | None:
    path = profile_path()
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        import yaml
    except ImportError:
        raise Unavailable(f"{path} needs PyYAML to be read: pip install pyyaml, or give --url") from None
    try:
        profile = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidArgument(str(path), f"is not YAML: {error}") from None
    url = profile.get("url") if isinstance(profile, dict) else None
    if not isinstance(url, str):
        raise InvalidArgument(str(path), "has no `url:`, such as `url: sealane://127.0.0.1:7070`")
    return url


def ask(url: str | None, data: Path, work: Callable[[Lane], Awaitable[T]], *, seconds: float = CONNECT_SECONDS) -> T:
    """Do the work on a lane to the node that is meant; it has `seconds` to answer at all."""
    return run(_on_a_lane(find_node(url, data), work, seconds))


async def _on_a_lane(url: str, work: Callable[[Lane], Awaitable[T]], seconds: float) -> T:
    import sealane

    async with sealane.connect(url, connect_timeout=seconds) as lane:
        return await work(lane)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Carry it out; Ctrl-C cancels it, and ends the command with `EXIT_INTERRUPTED` once it has cleaned up."""
    try:
        with asyncio.Runner(loop_factory=_new_loop) as runner:
            return runner.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None


def _new_loop() -> asyncio.AbstractEventLoop:
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()
