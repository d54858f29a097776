"""Deliveries that are under way: what a micro-batch of history leaves to the next one."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from sealane.pipeline.lake.tables import Lake

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

STATES_KEPT = 2
"""A micro-batch that is done again begins with what the one before it has left."""


class OpenDeliveries:
    """A small table of their own for each micro-batch, by its number."""

    def __init__(self, lake: Lake) -> None:
        self._root = lake.root / "state" / "deliveries"

    def left_by(self, spark: SparkSession, number: int) -> DataFrame | None:
        """What this micro-batch has left; None if there is none of that number."""
        path = self._path(number)
        return spark.read.parquet(str(path)) if path.exists() else None

    def keep(self, deliveries: DataFrame, number: int) -> None:
        """Those of these deliveries that are open are what the next micro-batch begins with."""
        deliveries.where("outcome IS NULL").write.mode("overwrite").parquet(str(self._path(number)))
        for path in self._root.iterdir():
            if path.name.isdigit() and int(path.name) <= number - STATES_KEPT:
                shutil.rmtree(path, ignore_errors=True)

    def _path(self, number: int) -> Path:
        return self._root / f"{number:012d}"
