"""What commands show: tables that also read well in a pipe, JSON for programs, examples, and questions before harm."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

from sealane.cli.group import EXIT_USAGE, fail

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

_TEXT_CHARS_MIN = 10
_WIDTH_PIPED = 10_000
"""Nothing is folded or cut where no terminal ends the line."""


def console(*, stderr: bool = False) -> Console:
    """Takes text as it is: names and payloads are no markup."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not made.is_terminal:
        made.width = _WIDTH_PIPED
    return made


def table(*columns: str, title: str | None = None) -> Table:
    """An empty table; a column whose name begins with `>` holds numbers."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    is_seen = sys.stdout.isatty()
    made = Table(
        box=SIMPLE_HEAD if is_seen else None,  # Rules are for eyes.
        title=title,
        title_justify="left",
        title_style="bold",
        pad_edge=False,
        collapse_padding=is_seen,
    )
    for column in columns:
        name = column.removeprefix(">")
        if column != name:
            made.add_column(name, justify="right", no_wrap=True)
        else:
            made.add_column(name, overflow="fold", min_width=max(len(name), _TEXT_CHARS_MIN))
    return made


def show_table(
    columns: Iterable[str], rows: Iterable[Iterable[object]], *, empty: str, title: str | None = None
) -> None:
    """The rows as a table, or one line that says what to do when there are none."""
    made = table(*columns, title=title)
    for row in rows:
        made.add_row(*("" if cell is None else plain(str(cell)) for cell in row))
    if made.row_count:
        show(made)
    else:
        typer.echo(empty, err=True)


def show_facts(facts: Iterable[tuple[str, object]]) -> None:
    """Names and values, one a line."""
    from rich.table import Table

    made = Table(box=None, show_header=False, pad_edge=False)
    made.add_column(style="bold", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in facts:
        made.add_row(name, plain(str(value)))
    show(made)


def show(made: RenderableType) -> None:
    """On standard output; in a pipe without spaces at the ends of lines."""
    from rich.measure import Measurement

    screen = console()
    if screen.is_terminal:
        # A table that lost columns is worse than one that the terminal wraps.
        wide = screen.options.update(max_width=_WIDTH_PIPED)
        screen.width = max(screen.width, Measurement.get(screen, wide, made).minimum)
        screen.print(made)
        return
    with screen.capture() as captured:
        screen.print(made)
    typer.echo("\n".join(line.rstrip() for line in captured.get().splitlines()))


def write_json(value: Any) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def write_json_line(value: Any) -> None:
    typer.echo(json.dumps(value, ensure_ascii=False))


def plain(text: str) -> str:
    """Without what would move a terminal's cursor or change its colours."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() or each in "\t\n" else each.encode("unicode_escape").decode() for each in text
    )


def confirm(question: str, *, yes: bool) -> None:
    """Go on only if that is wanted: `--yes` says so, or a person at a terminal."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{question} Nobody is there to answer: give --yes to go on", EXIT_USAGE)
    if not typer.confirm(question, err=True):
        typer.echo("nothing was changed", err=True)
        raise typer.Exit


def examples(*lines: str) -> str:
    """The end of a command's help."""
    escaped = (line.replace("[", "\\[") for line in lines)
    return "\n".join(["[bold]Examples[/bold]", *(f"[cyan]{line}[/cyan]" for line in escaped)])
