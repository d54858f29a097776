"""Bins of days that are over are kept: what is looked at every few minutes is what is new, not a month of messages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.anomalies.binning import COLUMNS, binned, left_before, with_depth
from sealane.pipeline.anomalies.measures import BINS_A_DAY
from sealane.pipeline.asking import read
from sealane.pipeline.facts.beginnings import beginnings
from sealane.pipeline.lake.tables import DELIVERIES, RAW_HISTORY, RAW_MESSAGES, Lake
from sealane.whole_files import PUBLIC, replace_file

if TYPE_CHECKING:
    import pandas as pd  # type: ignore[import-untyped]  # It ships no types.
    from pyspark.sql import DataFrame, SparkSession

_TEXT = ("domain", "topic", "subscription")
_SCHEMA = pa.schema(
    [(name, pa.string() if name in _TEXT else pa.int64() if name == "bin" else pa.float64()) for name in COLUMNS]
)


def bins_until(spark: SparkSession, lake: Lake, first_day: int, stop: int) -> pa.Table:
    """The bins from a day on and before `stop`, with the columns of `COLUMNS`. Days that are over by then are kept.

    What comes in later for a day that is kept changes nothing. Without `<lake>/state/bins` they are counted again.
    """
    import pandas as pd

    kept = _kept_days(lake)
    today = stop // BINS_A_DAY
    before = pd.concat([_empty(), *(_load(lake, day) for day in kept if first_day <= day < today)])
    begin = kept[-1] + 1 if kept else None
    if begin is None or begin <= today:
        rows, opening = _count(spark, lake, begin, stop, before)
    else:
        rows, opening = _empty(), None
    new = with_depth(rows, before, opening)
    days = new["bin"] // BINS_A_DAY
    for day in range(int(days.min()) if begin is None and len(new) else begin or today, today):
        _keep(lake, day, new[days == day])
    chosen = pd.concat([before, new[days >= first_day]])
    return _table(chosen)


def _count(
    spark: SparkSession, lake: Lake, begin: int | None, stop: int, before: pd.DataFrame
) -> tuple[pd.DataFrame, pd.DataFrame | None]:
    """By Spark, from the tables; their directories say which days a file is of. And what subscriptions had to do when
    those days began, of which the bins before them say nothing.
    """
    deliveries = read(spark, lake, DELIVERIES) if lake.exists(DELIVERIES) else None
    messages = read(spark, lake, RAW_MESSAGES)
    base = beginnings(read(spark, lake, RAW_HISTORY)).persist() if lake.exists(RAW_HISTORY) else None
    try:
        if begin is None:
            return binned(messages, deliveries, base).where(f"bin < {stop}").toPandas(), None
        older, newer = (f"date {sign} date_from_unix_date({begin})" for sign in ("<", ">="))
        settled = None if deliveries is None else deliveries.where(newer)
        rows = binned(messages.where(newer), settled, base).where(f"bin < {stop}").toPandas()
        new = None if base is None else _unknown(base, before)
        if new is None:
            return rows, None
        settled = None if deliveries is None else deliveries.where(older)
        return rows, left_before(messages.where(older), settled, new).toPandas()
    finally:
        if base is not None:
            base.unpersist()


def _unknown(base: DataFrame, before: pd.DataFrame) -> DataFrame | None:
    """Those subscriptions that none of the bins knows."""
    seen = {tuple(each) for each in before[["domain", "topic", "subscription"]].drop_duplicates().to_numpy()}
    rows = base.where("base IS NOT NULL").collect()
    new = [row for row in rows if (row.domain, row.topic, row.subscription) not in seen]
    return base.sparkSession.createDataFrame(new, base.schema) if new else None


# --- a file for each day ----------------------------------------------------------------------------------------------


def _path(lake: Lake, day: int) -> Path:
    return lake.root / "state" / "bins" / f"{day:06d}.parquet"


def _kept_days(lake: Lake) -> list[int]:
    return sorted(int(path.stem) for path in _path(lake, 0).parent.glob("*.parquet") if re.fullmatch(r"\d+", path.stem))


def _keep(lake: Lake, day: int, rows: pd.DataFrame) -> None:
    """A day without a message is kept too: it is not asked for again."""
    buffer = pa.BufferOutputStream()
    pq.write_table(_table(rows), buffer)
    replace_file(_path(lake, day), buffer.getvalue().to_pybytes(), PUBLIC)


def _load(lake: Lake, day: int) -> pd.DataFrame:
    return pq.read_table(_path(lake, day)).to_pandas()


def _empty() -> pd.DataFrame:
    return _SCHEMA.empty_table().to_pandas()


def _table(rows: pd.DataFrame) -> pa.Table:
    return pa.Table.from_pandas(rows, schema=_SCHEMA, preserve_index=False)
