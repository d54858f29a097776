"""The progress bar of everything that takes long."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn


@contextmanager
def progress_bar(title: str, unit: str) -> Iterator[Callable[[int, int | None], None]]:
    """A progress bar on standard error when that is a terminal; otherwise nothing.

    What it yields is told how much is done, and how much there is, if that is known.
    """
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.completed:,.0f}"),
        TaskProgressColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as bar:
        task = bar.add_task(f"{title} {unit}", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
