"""Messages come in cleaned: each once, without phone numbers, and what cannot be cleaned apart from the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from sealane.log import get_log
from sealane.pipeline.clean.rows import clean_rows
from sealane.pipeline.clean.schemas import registered_schemas
from sealane.pipeline.lake.appending import append_rows
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, QUARANTINE, Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.query import run_to_its_end
from sealane.security.envelopes import PrivateKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "clean"
REPEATS_SECONDS = 86_400.0
"""How long a message is remembered after it came in: one with the same id is left out for so long."""

_QUARANTINED = ("id", "partition", "offset", "created", "bytes", "reason", "domain", "topic", "date")
_STATE = {
    "spark.sql.streaming.stateStore.providerClass": (
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
    ),
    # A step writes what it has changed, and not all that there is.
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # What is to be forgotten is forgotten with the next messages: no step is worth it alone.
    "spark.sql.streaming.noDataMicroBatches.enabled": "false",
}

log = get_log("sealane.pipeline")


def clean_new(
    spark: SparkSession,
    lake: Lake,
    settings: PipelineSettings,
    keys: LakeKeys,
    *,
    repeats_seconds: float = REPEATS_SECONDS,
) -> int:
    """Take in what there is now, to its end. Returns how many messages came into the clean table.

    A message is known by its domain, topic and id. What cannot be cleaned goes to the quarantine, and stops nothing;
    raises what else stopped it.
    """
    step = CleanStep(lake)
    stream = cleaned(spark, settings, keys, repeats_seconds)
    with _configured(spark, _STATE):
        run_to_its_end(stream, lake, NAME, step.take)
    if step.quarantined:
        log.warning("messages could not be cleaned: clean/quarantine says why", messages=step.quarantined)
    return step.messages


def cleaned(spark: SparkSession, settings: PipelineSettings, keys: LakeKeys, repeats_seconds: float) -> DataFrame:
    """The stream of rows, each message once.

    They are cleaned and sealed before they are compared: what Spark shuffles and keeps on its disks is sealed too. A
    message is remembered from when it came in, which is when its micro-batch began. The time at which it was created
    would not do: its sender says that, and Spark drops what comes later than it allows.
    """
    # A key that nothing was ever sealed for: with it the source tells what is sealed end to end.
    options = {"decryptionKeys": PrivateKey.generate().pem()} | settings.source
    messages = spark.readStream.format("sealane").options(**options).load()
    return (
        clean_rows(messages, settings.bodies, keys, registered_schemas(settings))
        .selectExpr("*", "current_timestamp() AS taken_in")
        .withWatermark("taken_in", f"{round(repeats_seconds * 1000)} milliseconds")
        .dropDuplicatesWithinWatermark(["domain", "topic", "id"])
        .drop("taken_in")
    )


class CleanStep:
    """What it has taken in is counted."""

    def __init__(self, lake: Lake) -> None:
        self._lake = lake
        self.messages = 0
        self.quarantined = 0

    def take(self, rows: DataFrame, number: int) -> None:
        """One micro-batch, once, as often as it is called."""
        # One file for each directory and not one for each task: repeats were looked for wherever their ids led them.
        rows = rows.repartition("domain", "topic", "date").persist()
        try:
            clean = rows.where("reason IS NULL").drop("reason")
            poison = rows.where("reason IS NOT NULL").select(*_QUARANTINED)
            kept = append_rows(self._lake, CLEAN_MESSAGES, clean, writer=NAME, number=number)
            apart = append_rows(self._lake, QUARANTINE, poison, writer=NAME, number=number)
        finally:
            rows.unpersist()
        self.messages += kept.rows
        self.quarantined += apart.rows


@contextmanager
def _configured(spark: SparkSession, settings: dict[str, str]) -> Iterator[None]:
    """The session has these settings for the block."""
    before = {name: spark.conf.get(name, None) for name in settings}
    for name, text in settings.items():
        spark.conf.set(name, text)
    try:
        yield
    finally:
        for name, was in before.items():
            if was is None:
                spark.conf.unset(name)
            else:
                spark.conf.set(name, was)
