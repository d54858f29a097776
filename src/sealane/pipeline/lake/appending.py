"""Appending what a micro-batch has computed to a table, exactly once; and making a table anew."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pyarrow.parquet as pq

from sealane.pipeline.lake.log import Move, Step, TableLog
from sealane.pipeline.lake.tables import STAGING, Lake, Table
from sealane.whole_files import sync

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

RECORDS_KEPT = 100
"""Of each writer: Spark asks for the last one again, and people look at some more."""

Write = Callable[[Path], None]
"""Writes Parquet files under a directory that is not there yet, laid out as the table is."""


def append_rows(lake: Lake, table: Table, rows: DataFrame, *, writer: str, number: int) -> Step:
    """Make the rows of a DataFrame part of the table; it has the columns by which the table is laid out."""

    def write(staging: Path) -> None:
        _write(rows, table, staging)

    return append(lake, table, write, writer=writer, number=number)


def append(lake: Lake, table: Table, write: Write, *, writer: str, number: int) -> Step:
    """Make what `write` writes part of the table, as step `number` of `writer`. One that has come in is not computed
    again. Nobody sees any of it before all of it is durable.
    """
    log = TableLog(lake, table)
    done = log.find(writer, number)
    if done is None:
        name = f"{writer}-{number:012d}"
        staging = lake.staging_path(table, name)
        # What another try has left is not whole, or was computed by a Spark that partitioned it in another way.
        shutil.rmtree(staging, ignore_errors=True)
        write(staging)
        done = _step(staging, name, writer, number)
    log.commit(done)
    log.forget_before(writer, number - RECORDS_KEPT)
    shutil.rmtree(lake.staging_path(table, f"{writer}-{number:012d}"), ignore_errors=True)
    return done


def replace_rows(lake: Lake, table: Table, rows: DataFrame, *, writer: str) -> Step:
    """Put the rows of a DataFrame in the place of all that the table has, in one step. Nobody else may write it."""

    def write(staging: Path) -> None:
        _write(rows, table, staging)

    return replace(lake, table, write, writer=writer)


def replace(lake: Lake, table: Table, write: Write, *, writer: str) -> Step:
    """Put what `write` writes in the place of all that the table has, in one step. Nobody else may write it."""
    log = TableLog(lake, table)
    last = log.last(writer)
    if last is not None:
        log.carry_out(last)
    number = 0 if last is None else last.number + 1
    name = f"{writer}-{number:012d}"
    staging = lake.staging_path(table, name)
    shutil.rmtree(staging, ignore_errors=True)
    write(staging)
    removes = [str(file.relative_to(lake.path(table))) for file in lake.files(table)]
    step = msgspec.structs.replace(_step(staging, name, writer, number), removes=removes)
    log.commit(step)
    log.forget_before(writer, number - RECORDS_KEPT)
    shutil.rmtree(staging, ignore_errors=True)
    return step


def _write(rows: DataFrame, table: Table, staging: Path) -> None:
    # Spark's own choice are 96 bits without a zone, which it alone knows how to read.
    rows.sparkSession.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
    rows.write.partitionBy(*table.partitioned_by).parquet(str(staging))


def _step(staging: Path, name: str, writer: str, number: int) -> Step:
    adds, rows = [], 0
    for index, path in enumerate(sorted(staging.rglob("*.parquet"))):
        sync(path)  # Spark leaves that to the machine; a record must not be there before what it is about.
        rows += pq.read_metadata(path).num_rows
        found = path.relative_to(staging)
        adds.append(Move(f"{STAGING}/{name}/{found}", str(found.parent / f"{name}-{index:04d}.parquet")))
    return Step(writer=writer, number=number, adds=adds, rows=rows)
