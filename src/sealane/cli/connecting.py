"""From a command to its node: which one is meant, how it is reached, and how a command ends."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Awaitable, Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from sealane.cli.choosing import chosen_profile
from sealane.cli.group import EXIT_INTERRUPTED
from sealane.errors import Unauthenticated, Unavailable

if TYPE_CHECKING:
    from sealane.client import Lane

T = TypeVar("T")

DEFAULT_DATA = Path("sealane-data")
CONNECT_SECONDS = 5.0
"""How long a command looks for an answer; a person waits for it."""


def node_of(data: Path) -> str:
    """Where the node is that runs on this data directory. Raises `Unavailable` if none does."""
    from sealane.client.finding import running_node, url_of

    notice = running_node(data)
    url = None if notice is None else url_of(notice)
    if url is None:
        raise Unavailable(f"no node with a native door runs on {str(data)!r}")
    return url


def ask(
    url: str | None,
    data: Path,
    work: Callable[[Lane], Awaitable[T]],
    *,
    seconds: float = CONNECT_SECONDS,
    offline: bool = False,
) -> T:
    """Do the work on a lane to the node that is meant; it has `seconds` to answer at all.

    With `offline` it need not run: if nothing says otherwise, and no node runs on the data directory, that is opened
    here, and made if it is missing. For administration, which has to begin before the first start.
    """
    profile = chosen_profile()
    if offline and url is None and profile is None and _is_nobodys(data):
        return run(_in_this_process(data, work))
    try:
        return run(_on_a_lane(url, profile, data, work, seconds))
    except Unauthenticated as error:
        error.add_note("show something else by --profile, SEALANE_API_KEY or SEALANE_TOKEN, or use `sealane login`")
        raise


async def _on_a_lane(
    url: str | None, profile: str | None, data: Path, work: Callable[[Lane], Awaitable[T]], seconds: float
) -> T:
    import sealane

    async with sealane.connect(url, profile=profile, data=data, connect_timeout=seconds) as lane:
        return await work(lane)


def _is_nobodys(data: Path) -> bool:
    """Whether no node runs there, and none elsewhere is meant."""
    from sealane.client.finding import running_node
    from sealane.client.user_profiles import UserProfiles

    if os.environ.get("SEALANE_URL") or running_node(data) is not None:
        return False
    return data.is_dir() or data != DEFAULT_DATA or UserProfiles().default is None


async def _in_this_process(data: Path, work: Callable[[Lane], Awaitable[T]]) -> T:
    from sealane.client.embedded import EmbeddedLane
    from sealane.server.loading import load

    settings = load().settings
    typer.echo(f"no node runs on {str(data)!r}: it is opened here", err=True)
    # What is changed before a node's first start is in its audit log too.
    async with EmbeddedLane(data, settings=settings.node, storage=settings.storage, audited=True) as lane:
        return await work(lane)


def run(work: Coroutine[Any, Any, T]) -> T:
    """Carry it out; Ctrl-C cancels it, and ends the command with `EXIT_INTERRUPTED` once it has cleaned up."""
    # What the client notes for programs is told by the command itself, once, and as an error.
    logging.getLogger("sealane").addHandler(logging.NullHandler())
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
