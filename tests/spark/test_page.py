"""docs/spark.md says what there is: every option, for what it is for, and every column."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sealane.spark.options.names import BATCH_OPTIONS, READ_OPTIONS, SHARED_OPTIONS, STREAM_OPTIONS, WRITE_OPTIONS
from sealane.spark.source.rows.columns import MESSAGE_SCHEMA

PAGE = (Path(__file__).parents[2] / "docs" / "spark.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> list[list[str]]:
    """The cells of the first table below it, without the table's head."""
    section = PAGE.partition(f"\n{heading}\n")[2]
    table = re.search(r"(?:^\|.*\n)+", section, re.MULTILINE)
    assert table is not None, f"there is no table below {heading!r}"
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in table.group().splitlines()[2:]]


def names_in(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


@pytest.mark.parametrize(
    ("purpose", "options"),
    [
        ("both", SHARED_OPTIONS),
        ("reading", READ_OPTIONS - BATCH_OPTIONS - STREAM_OPTIONS),
        ("batches", BATCH_OPTIONS),
        ("streams", STREAM_OPTIONS),
        ("writing", WRITE_OPTIONS),
    ],
)
def test_every_option_is_on_the_page_with_its_purpose(purpose: str, options: frozenset[str]) -> None:
    rows = [row for row in rows_below("## Options") if row[1] == purpose]

    assert sorted(name for row in rows for name in names_in(row[0])) == sorted(options)


def test_the_table_of_options_has_no_other_purposes() -> None:
    assert {row[1] for row in rows_below("## Options")} == {"both", "reading", "batches", "streams", "writing"}


def test_every_column_is_on_the_page_in_its_order() -> None:
    written = [name for row in rows_below("## Reading") for name in names_in(row[0])]

    assert written == MESSAGE_SCHEMA.names
