"""`sealane top`: a node, live, in a terminal."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from sealane.cli.connecting import ask
from sealane.cli.durations import duration, rate, size
from sealane.cli.options import DEFAULT_DATA, DURATION, Data, Url, seconds
from sealane.cli.output import console, examples, plain, show, table
from sealane.cli.status_rows import NARROW_COLUMNS, STATUS_COLUMNS, connections_text, status_rows, storage_text
from sealane.errors import SealaneError

if TYPE_CHECKING:
    from rich.console import Group

    from sealane.client import Lane
    from sealane.node.status import NodeStatus

top_command = typer.Typer()

TOPICS_ASKED = 200
"""More than any terminal shows."""
INTERVAL_SECONDS_MIN = 0.1
_ENDING_KEYS = frozenset(b"qQ\x04")
_COLUMNS_FOR_ALL = 120
_LINES_AROUND = 8
"""What a frame has beside the rows."""


@top_command.command(
    name="top",
    epilog=examples("sealane top", "sealane top --interval 5s", "sealane top --once > snapshot.txt"),
)
def top(
    once: Annotated[bool, typer.Option("--once", help="Show one frame, and end.")] = False,
    interval: Annotated[
        float, typer.Option("--interval", "-i", parser=seconds, metavar=DURATION, help="How often to look.")
    ] = 1.0,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Watch a node live: rates, depths, ages, leases, dead letters. The deepest topics come first; q ends it."""
    if once or not sys.stdout.isatty():

        async def look(lane: Lane) -> NodeStatus:
            return await lane.status(topics_max=TOPICS_ASKED)

        found = ask(url, data, look)
        show(frame(found, rows_max=None))
        return
    ask(url, data, lambda lane: _watch(lane, max(interval, INTERVAL_SECONDS_MIN)))


async def _watch(lane: Lane, interval: float) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    status = await lane.status(topics_max=TOPICS_ASKED)
    with _keys() as ended, Live(console=console(), screen=True, auto_refresh=False) as live:
        problem: str | None = None
        while not ended.is_set():
            width, height = live.console.size
            columns = STATUS_COLUMNS if width >= _COLUMNS_FOR_ALL else NARROW_COLUMNS
            shown = frame(status, rows_max=max(1, height - _LINES_AROUND), columns=columns)
            live.update(shown if problem is None else Group(Text(problem, style="bold red"), shown), refresh=True)
            try:
                async with asyncio.timeout(interval):
                    await ended.wait()
            except TimeoutError:
                pass
            try:
                # Of a node that restarts the last frame stays, until it is back.
                status, problem = await lane.status(topics_max=TOPICS_ASKED), None
            except SealaneError as error:
                problem = plain(str(error))


@contextmanager
def _keys() -> Iterator[asyncio.Event]:
    """An event that is set when somebody presses q."""
    ended = asyncio.Event()
    if not sys.stdin.isatty():
        yield ended
        return
    import os
    import termios
    import tty

    keyboard = sys.stdin.fileno()
    before = termios.tcgetattr(keyboard)

    def pressed() -> None:
        keys = os.read(keyboard, 64)
        if not keys or set(keys) & _ENDING_KEYS:
            ended.set()

    loop = asyncio.get_running_loop()
    tty.setcbreak(keyboard, termios.TCSADRAIN)
    loop.add_reader(keyboard, pressed)
    try:
        yield ended
    finally:
        loop.remove_reader(keyboard)
        termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


def frame(status: NodeStatus, *, rows_max: int | None, columns: Sequence[str] = STATUS_COLUMNS) -> Group:
    """One picture of the node, with at most that many rows."""
    from rich.console import Group
    from rich.text import Text

    health = Text("ready", "green") if status.ready else Text("NOT READY", "bold red")
    memory = "" if status.memory_bytes is None else f"   memory {size(status.memory_bytes)}"
    lines = [
        Text.assemble(("Sealane ", "bold"), status.version, "   ", health, f"   up {duration(status.uptime_seconds)}"),
        Text(f"storage {storage_text(status)}{memory}   connections {connections_text(status)}"),
        Text.assemble(
            "published ",
            (rate(status.published_per_second), "bold"),
            "   acked ",
            (rate(status.acked_per_second), "bold"),
            f"   leased {status.leased:,}   consumers {status.consumers:,}",
            f"   topics {status.topics_total:,}   messages {status.messages_total:,}",
        ),
        *(Text(f"! {problem}", "bold red") for problem in status.problems),
    ]
    rows = list(status_rows(status))
    made = table(*columns)
    for row in rows[:rows_max]:
        told = dict(zip(STATUS_COLUMNS, row, strict=True))
        made.add_row(*(told[column] for column in columns))
    hidden = len(rows) - made.row_count
    return Group(*lines, made, *([Text(f"and {hidden:,} rows more", "dim")] if hidden else []))
