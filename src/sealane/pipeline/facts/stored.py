"""Which offsets are stored, sixty-four of them in one number: a table of all messages becomes a small one, exactly.

Offsets are dense and nearly in order in their files, so that a task has put them together before anything is sent to
another: nothing of the size of all messages is sorted or shuffled.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

PLACE = ("domain", "topic", "partition")

_CELL = 64
"""The bits of a number."""


def cells_of(messages: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """A row for each 64 offsets of which any is stored: `bits` says which, `low` and `high` are the first and the last
    of them, `first` and `last` those that were created in the window.
    """
    from pyspark.sql import functions as f

    inside = _created_in(since, until)
    return (
        messages.selectExpr(
            *PLACE,
            "offset",
            f"offset DIV {_CELL} AS cell",
            f"shiftleft(1L, CAST(offset % {_CELL} AS INT)) AS bit",
            f"IF({inside}, offset, NULL) AS chosen",
        )
        .groupBy(*PLACE, "cell")
        .agg(
            f.bit_or("bit").alias("bits"),
            f.min("offset").alias("low"),
            f.max("offset").alias("high"),
            f.min("chosen").alias("first"),
            f.max("chosen").alias("last"),
        )
    )


def places_of(cells: DataFrame) -> DataFrame:
    """Of each partition what the window has of it: the messages from `first` up to, and without, `stop`."""
    from pyspark.sql import functions as f

    found = cells.groupBy(*PLACE).agg(f.min("first").alias("first"), (f.max("last") + 1).alias("stop"))
    return found.where("first IS NOT NULL")


def holes_of(cells: DataFrame) -> DataFrame:
    """Runs of offsets that are not stored, between two that are. A run ends with `stop`, which is stored."""
    from pyspark.sql import Window
    from pyspark.sql import functions as f

    order = Window.partitionBy(*PLACE).orderBy("cell")
    between = (
        cells.withColumn("before", f.lag("high").over(order))
        .where("low > before + 1")
        .selectExpr(*PLACE, "before + 1 AS first", "low AS stop")
    )
    # Within a cell: each that is stored, beside the one before it.
    stored = (
        cells.where("bit_count(bits) != high - low + 1")
        .selectExpr(*PLACE, "cell", "bits", "explode(sequence(low, high)) AS offset")
        .where(f"getbit(bits, CAST(offset % {_CELL} AS INT)) = 1")
    )
    within = (
        stored.withColumn("before", f.lag("offset").over(Window.partitionBy(*PLACE, "cell").orderBy("offset")))
        .where("offset > before + 1")
        .selectExpr(*PLACE, "before + 1 AS first", "offset AS stop")
    )
    return between.unionByName(within)


def _created_in(since: datetime | None, until: datetime | None) -> str:
    bounds = [
        f"created {sign} timestamp_micros({_micros(each)})" for sign, each in ((">=", since), ("<", until)) if each
    ]
    return " AND ".join(bounds) or "true"


def _micros(moment: datetime) -> int:
    return round(moment.timestamp() * 1_000_000)
