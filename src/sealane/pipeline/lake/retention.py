"""How long the lake keeps what it has, by domain: whole days, oldest first."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date, timedelta
from pathlib import Path

from sealane.errors import InvalidArgument
from sealane.pipeline.lake.log import Step, TableLog
from sealane.pipeline.lake.tables import Lake, Table

EVERY_DOMAIN = "*"
WRITER = "retention"


def parse_kept_days(text: str) -> dict[str, int]:
    """`shop=30,*=365`: days by domain, `*` for those that are not named. Nothing: everything is kept."""
    kept = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        domain, _, days = part.rpartition("=")
        if not days.isdigit() or int(days) < 1:
            raise InvalidArgument("keep", f"{part!r} is not DOMAIN=DAYS, such as shop=30 or *=365, with 1 day or more")
        kept[domain or EVERY_DOMAIN] = int(days)
    return kept


def forget_older(lake: Lake, table: Table, kept_days: Mapping[str, int], today: date) -> int:
    """Take the days away that are older than their domain keeps them, in one step. Returns how many files went.

    A table that is not laid out by domain goes by what every domain keeps.
    """
    root = lake.path(table)
    gone = [str(file.relative_to(root)) for file in lake.files(table) if _is_over(file, kept_days, today)]
    if gone:
        log = TableLog(lake, table)
        last = log.last(WRITER)
        number = 0 if last is None else last.number + 1
        log.commit(Step(writer=WRITER, number=number, adds=[], removes=gone))
        log.forget_before(WRITER, number)
    return len(gone)


def _is_over(file: Path, kept_days: Mapping[str, int], today: date) -> bool:
    laid_out = dict(part.split("=", 1) for part in file.parts if "=" in part)
    days = kept_days.get(laid_out.get("domain", EVERY_DOMAIN), kept_days.get(EVERY_DOMAIN))
    try:
        day = date.fromisoformat(laid_out["date"])
    except (KeyError, ValueError):
        return False  # Spark's name for no date at all: nobody can say how old it is.
    return days is not None and day < today - timedelta(days=days)
