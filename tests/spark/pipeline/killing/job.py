"""The driver's program: `sealane pipeline run`, and a plan of what happens at its steps.

    python -m tests.spark.pipeline.killing.job SHUFFLE_PARTITIONS LOCAL_DIRECTORY ARGUMENT…

The pipeline has no idea of it: what its steps call is wrapped from outside, before they are imported, and is otherwise
as users have it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

import sealane.spark
from sealane.pipeline.lake import appending, compacting
from sealane.pipeline.lake.log import Step, TableLog
from sealane.pipeline.lake.tables import STAGING, Lake, Table
from sealane.pipeline.steps import query, source
from sealane.pipeline.steps.open_deliveries import OpenDeliveries
from sealane.pipeline.steps.seen_ids import SeenIds
from tests.spark.killing.plan import Plan
from tests.spark.pipeline.killing.points import Moment, kind_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SMALL_FILES = 2
"""Of one directory are put together here, so that there is a compaction in every life."""


def come_by(kind: str, moment: Moment) -> None:
    Plan.of_this_job().come_by(kind, moment)


def replace(owner: Any, name: str, make: Callable[[Any], Callable[..., Any]]) -> None:
    """Have what is called by this name wrapped."""
    wrapped = getattr(owner, name)
    setattr(owner, name, wraps(wrapped)(make(wrapped)))


def wrap_staging() -> None:
    def appended(append: Any) -> Callable[..., Any]:
        def call(lake: Lake, table: Table, write: appending.Write, **named: Any) -> Step:
            def staged(staging: Path) -> None:
                kind = kind_of(table, "")
                come_by(kind, Moment.BEFORE_STAGING)
                write(staging)
                if len(list(staging.rglob("*.parquet"))) > 1:  # An empty micro-batch has nothing to lose.
                    come_by(kind, Moment.AFTER_STAGING)

            done: Step = append(lake, table, staged, **named)
            return done

        return call

    def synced(sync: Any) -> Callable[..., Any]:
        def call(path: Path) -> None:
            sync(path)
            layer, name = path.parts[path.parts.index(STAGING) - 2 : path.parts.index(STAGING)]
            come_by(f"{layer}-{name}", Moment.AFTER_A_SYNC)

        return call

    replace(appending, "append", appended)
    replace(appending, "sync", synced)


def wrap_log() -> None:
    under_way: list[tuple[str, Step]] = []
    """The step that is carried out, if it is one of several files."""

    def committed(commit: Any) -> Callable[..., Any]:
        def call(self: TableLog, step: Step) -> None:
            if len(step.adds) > 1:
                come_by(kind_of(self._table, step.writer), Moment.BEFORE_THE_RECORD)
            commit(self, step)

        return call

    def carried_out(carry_out: Any) -> Callable[..., Any]:
        def call(self: TableLog, step: Step) -> None:
            if len(step.adds) < 2:
                carry_out(self, step)
                return
            kind = kind_of(self._table, step.writer)
            come_by(kind, Moment.AFTER_THE_RECORD)
            under_way.append((kind, step))
            carry_out(self, step)
            under_way.clear()
            come_by(kind, Moment.AFTER_THE_MOVES)

        return call

    def renamed(rename: Any) -> Callable[..., Any]:
        def call(self: Path, target: Any) -> Path:
            done: Path = rename(self, target)
            for kind, step in under_way:
                if not str(target).endswith(step.adds[-1].place):
                    come_by(kind, Moment.BETWEEN_MOVES)
            return done

        return call

    def unlinked(unlink: Any) -> Callable[..., Any]:
        def call(self: Path, missing_ok: bool = False) -> None:
            unlink(self, missing_ok=missing_ok)
            for kind, step in under_way:
                if str(self).endswith(tuple(step.removes[:-1])):
                    come_by(kind, Moment.BETWEEN_REMOVALS)

        return call

    replace(TableLog, "commit", committed)
    replace(TableLog, "carry_out", carried_out)
    replace(Path, "rename", renamed)
    replace(Path, "unlink", unlinked)


def wrap_queries() -> None:
    def started(start: Any) -> Callable[..., Any]:
        def call(self: query.StandingQuery, stream_of: Any, lake: Lake, name: str, take: query.TakeIn) -> None:
            def taken(rows: DataFrame, number: int) -> None:
                take(rows, number)
                come_by(name, Moment.BEFORE_SPARKS_COMMIT)

            start(self, stream_of, lake, name, taken)

        return call

    def went_on(take_in: Any) -> Callable[..., Any]:
        def call(self: query.StandingQuery, *arguments: Any) -> None:
            take_in(self, *arguments)
            come_by(self._name, Moment.AFTER_SPARKS_COMMIT)

        return call

    def kept(name: str) -> Callable[[Any], Callable[..., Any]]:
        def make(keep: Any) -> Callable[..., Any]:
            def call(*arguments: Any) -> None:
                come_by(name, Moment.BEFORE_ITS_STATE)
                keep(*arguments)
                come_by(name, Moment.AFTER_ITS_STATE)

            return call

        return make

    replace(query.StandingQuery, "__init__", started)
    replace(query.StandingQuery, "take_in", went_on)
    replace(SeenIds, "keep", kept("messages"))
    replace(OpenDeliveries, "keep", kept("history"))


class KilledReader(source.WritingReader):
    """A worker that has written files, and does not live to tell of them."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition):
            come_by("messages", Moment.WITHIN_A_TASK)
            yield rows


def wrap_the_rest(shuffle_partitions: int, directory: Path) -> None:
    def small(session: Any) -> Callable[..., Any]:
        def call(name: str, **settings: Any) -> Any:
            small = {
                "spark_driver_memory": "1g",
                "spark_sql_shuffle_partitions": shuffle_partitions,
                "spark_local_dir": str(directory / "local"),
                "spark_sql_warehouse_dir": str(directory / "warehouse"),
            }
            return session(name, **(settings | small))

        return call

    def soon(compact: Any) -> Callable[..., Any]:
        def call(lake: Lake, table: Table) -> Step | None:
            done: Step | None = compact(lake, table, small_files=SMALL_FILES)
            return done

        return call

    replace(sealane.spark, "session", small)
    replace(compacting, "compact", soon)
    source.WritingReader = KilledReader  # type: ignore[misc]


def main(shuffle_partitions: int, directory: Path, arguments: list[str]) -> None:
    wrap_staging()
    wrap_log()
    wrap_queries()
    wrap_the_rest(shuffle_partitions, directory)
    from sealane.cli.main import app

    app(["pipeline", "run", *arguments])


if __name__ == "__main__":
    # Workers import what they are sent by its module's name, which is not that of a program.
    from tests.spark.pipeline.killing import job

    job.main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
