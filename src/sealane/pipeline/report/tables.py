"""Tables of the page: with headers that a screen reader knows, in a frame of their own where they are too wide."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sealane.pipeline.report.markup import Markup, element, joined

NONE = "–"


@dataclass(frozen=True, slots=True)
class Cell:
    """`value` is what the column is sorted by, where that is not the text."""

    content: str | Markup
    value: float | None = None
    style: str | None = None


def number(value: float | None, text: str | None = None, *, style: str | None = None) -> Cell:
    """A number as it is to be read. Zero, and what is not known, stand back."""
    if value is None:
        return Cell(NONE, None, "number none")
    shown = f"{value:,}" if text is None else text
    return Cell(shown, value, f"number {style or ('none' if value == 0 else '')}".strip())


def table(caption: str, columns: Sequence[str], rows: Iterable[Sequence[Cell | str]]) -> Markup:
    """A column whose name begins with `>` is one of numbers; one without a name is not sorted by."""
    heads = (
        element("th", name.lstrip(">"), scope="col", class_="number" if name.startswith(">") else None)
        for name in columns
    )
    body = (element("tr", *(_cell(cell) for cell in row)) for row in rows)
    content = element("table", element("thead", element("tr", *heads)), element("tbody", *body), aria_label=caption)
    # What is above a table stays where it is while the table is moved on a small screen.
    frame = element("div", content, class_="table", tabindex=0, role="region", aria_label=caption)
    return joined([element("h3", caption), frame])


def name(text: str) -> Cell:
    """Names are others' words: long ones are broken."""
    return Cell(element("span", text), style="name")


def command(text: str) -> Markup:
    """One to copy: a click selects all of it."""
    return element("code", text, class_="command")


def absent(sentence: str, how: str | None = None) -> Markup:
    """Instead of a table: why there is none, and the command that makes one."""
    return element("p", sentence, joined([" ", command(how)]) if how else None, class_="absent")


def _cell(cell: Cell | str) -> Markup:
    if isinstance(cell, str):
        return element("td", cell)
    return element("td", cell.content, class_=cell.style, data_value=None if cell.value is None else f"{cell.value!r}")
