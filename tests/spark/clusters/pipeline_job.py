"""The driver's program: `sealane …`, and a plan of what happens in the tasks that executors do for the pipeline.

    python -m tests.spark.clusters.pipeline_job ARGUMENT…

A cycle's commits are steps of the driver alone; an executor reads messages and writes their files, reads history, and
writes facts. The pipeline has no idea of the plan.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

import pyarrow as pa
from pyspark.sql.datasource import InputPartition

from sealane.pipeline.steps import gated_reader, history, source
from sealane.pipeline.steps.fact_files import FactPiece
from tests.spark.killing.plan import Plan
from tests.spark.pipeline.killing.points import Moment

MESSAGES, HISTORY, FACTS = "messages", "history", "facts"
TASKS = (MESSAGES, HISTORY, FACTS)


def come_by(task: str) -> None:
    Plan.of_this_job().come_by(task, Moment.WITHIN_A_TASK)


class MessagesReader(source.WritingReader):
    """Its files are written when it comes by, and nobody was told of them."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition):
            come_by(MESSAGES)
            yield rows


class HistoryReader(gated_reader.GatedReader):
    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for rows in super().read(partition):
            come_by(HISTORY)
            yield rows


class FactsWriter:
    """As for messages."""

    @staticmethod
    def write(piece: FactPiece) -> list[str]:
        paths = piece.write()
        come_by(FACTS)
        return paths


def main(arguments: list[str]) -> None:
    source.WritingReader = MessagesReader  # type: ignore[misc]
    gated_reader.GatedReader = HistoryReader  # type: ignore[misc]
    history.FactPiece = FactsWriter  # type: ignore[assignment, attr-defined]
    history.LOCAL_DELIVERIES = 0  # So few would be made by the driver.
    from sealane.cli.main import app

    app(arguments)


if __name__ == "__main__":
    # Workers import what they are sent by its module's name, which is not that of a program.
    from tests.spark.clusters import pipeline_job

    pipeline_job.main(sys.argv[1:])
