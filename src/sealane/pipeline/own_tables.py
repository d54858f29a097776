"""Tables of one's own: a small class, made known by an entry point, is computed after each cycle."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, Protocol

from sealane.log import get_log
from sealane.pipeline.asking import read
from sealane.pipeline.lake.appending import replace_rows
from sealane.pipeline.lake.tables import TABLES, Lake, Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

log = get_log("sealane.pipeline")

GROUP = "sealane.pipeline.tables"
"""The entry points' group. What an entry names is called without arguments and gives an `OwnTable`."""
WRITER = "own"

Tables = Callable[[str], "DataFrame"]
"""A table by its name in SQL, `tables("deliveries")`. Raises `KeyError` for one that is not there yet."""


class OwnTable(Protocol):
    @property
    def table(self) -> Table:
        """Where it is, and by which of its columns it is laid out."""
        ...

    def compute(self, tables: Tables) -> DataFrame:
        """All of its rows, from other tables. They take the place of what it had."""
        ...


def own_tables() -> list[OwnTable]:
    """Those of all installed packages. One that cannot be had is logged, and the others are there all the same."""
    return [found for entry in entry_points(group=GROUP) if (found := _loaded(entry)) is not None]


def refresh_own_tables(spark: SparkSession, lake: Lake) -> None:
    """Compute each anew. One that fails keeps what it had, and is no matter of the others."""
    by_name = {table.view: table for table in (*TABLES, *lake.typed_tables())}

    def tables(name: str) -> DataFrame:
        if name not in by_name or not lake.exists(by_name[name]):
            raise KeyError(name)
        return read(spark, lake, by_name[name])

    for own in own_tables():
        try:
            replace_rows(lake, own.table, own.compute(tables), writer=WRITER)
        except KeyError as missing:
            log.info("a table waits for another one", table=own.table.full_name, missing=missing.args[0])
        except Exception as error:
            log.exception("a table could not be computed", table=own.table.full_name, problem=type(error).__name__)


def _loaded(entry: EntryPoint) -> OwnTable | None:
    try:
        found: OwnTable = entry.load()()
        if found.table.name in {table.view for table in TABLES}:
            log.error("a table has the name of one of Sealane's, and is left out", entry=entry.name)
            return None
    except Exception:
        log.exception("a table cannot be loaded, and is left out", entry=entry.name, home=entry.value)
        return None
    return found
