"""What a worker of Spark's holds on to from task to task is not looked through after each of them."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from sealane.spark.workers import begin_task

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_a_task_sets_aside_what_its_worker_has(spark: SparkSession) -> None:
    def set_aside(_: int) -> int:
        begin_task()
        return gc.get_freeze_count()

    (objects,) = spark.sparkContext.parallelize([0], 1).map(set_aside).collect()
    assert objects > 1_000


def test_a_process_that_is_no_worker_keeps_its_collector_as_it_is() -> None:
    made_since: list[list[object]] = [[] for _ in range(1_000)]
    before = gc.get_freeze_count()
    begin_task()
    assert gc.get_freeze_count() < before + len(made_since)
