"""Messages come in: as they are, and cleaned, each once, with what cannot be cleaned apart from the others.

One query reads each message once, and its tasks write the files of three tables: see `sealane.pipeline.steps.writing`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from sealane.log import get_log
from sealane.pipeline.clean.repeats import RUN, find_repeats
from sealane.pipeline.clean.rows import MessageRows
from sealane.pipeline.clean.schemas import registered_schemas
from sealane.pipeline.lake.appending import Write, append
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, QUARANTINE, RAW_MESSAGES, Lake, Table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.steps.kept_query import KeptQuery, access_of
from sealane.pipeline.steps.query import StandingQuery
from sealane.pipeline.steps.seen_ids import SeenIds
from sealane.pipeline.steps.staged import Destination, Moving, forget_runs
from sealane.security.envelopes import PrivateKey

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "messages"
REPEATS_SECONDS = 86_400.0
"""How long a message is remembered after it came in, at least: one with the same id is left out for so long."""
WRITTEN = (RAW_MESSAGES, CLEAN_MESSAGES, QUARANTINE)

log = get_log("sealane.pipeline")


class TakenIn(NamedTuple):
    messages: int
    clean: int
    quarantined: int


def take_in_messages(
    spark: SparkSession,
    lake: Lake,
    settings: PipelineSettings,
    keys: LakeKeys,
    *,
    repeats_seconds: float = REPEATS_SECONDS,
) -> TakenIn:
    """Take in what there is now, to its end, by a query that ends with it."""
    with closing(Messages(spark, lake, settings, repeats_seconds=repeats_seconds)) as messages:
        return messages.take_in(keys)


class Messages:
    """Takes them in, by a query that stays as long as it would be the same query."""

    def __init__(
        self,
        spark: SparkSession,
        lake: Lake,
        settings: PipelineSettings,
        *,
        repeats_seconds: float = REPEATS_SECONDS,
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._settings = settings
        self._repeats_seconds = repeats_seconds
        self._kept = KeptQuery()
        self._step: MessageStep | None = None

    def take_in(self, keys: LakeKeys) -> TakenIn:
        """Take in what there is now, to its end.

        A message is known by its domain, topic and id. What cannot be cleaned goes to the quarantine, and stops
        nothing; raises what else stopped it.
        """
        schemas = registered_schemas(self._settings)
        made_of = (access_of(self._settings), keys.check, keys.numbers, schemas)
        query = self._kept.query(made_of, partial(self._open, MessageRows(keys, self._settings.bodies, schemas)))
        assert self._step is not None
        before = self._step.taken_in
        try:
            query.take_in()
        finally:
            forget_runs(self._lake, WRITTEN)
        taken = TakenIn(*(now - then for now, then in zip(self._step.taken_in, before, strict=True)))
        if taken.quarantined:
            log.warning("messages could not be cleaned: clean/quarantine says why", messages=taken.quarantined)
        return taken

    def close(self) -> None:
        self._kept.close()
        forget_runs(self._lake, WRITTEN)

    def _open(self, rows: MessageRows) -> StandingQuery:
        from sealane.pipeline.steps import source

        forget_runs(self._lake, WRITTEN)
        destination = Destination.new(self._lake)
        self._step = MessageStep(self._lake, destination, self._repeats_seconds)
        # A key that nothing was ever sealed for: with it the source tells what is sealed end to end.
        options = {"decryptionKeys": PrivateKey.generate().pem()} | self._settings.source

        def stream_of(gate: str) -> DataFrame:
            self._spark.dataSource.register(source.writing_source(gate, rows, destination))
            return self._spark.readStream.format(source.NAME).options(**options).load()

        return StandingQuery(stream_of, self._lake, NAME, self._step.take)


class MessageStep:
    """What it has taken in is counted: `taken_in`."""

    def __init__(self, lake: Lake, destination: Destination, repeats_seconds: float) -> None:
        self._lake = lake
        self._destination = destination
        self._repeats_us = round(repeats_seconds * 1_000_000)
        self._seen = SeenIds(lake)
        self.taken_in = TakenIn(0, 0, 0)

    def take(self, files: DataFrame, number: int) -> None:
        """One micro-batch, once, as often as it is called."""
        is_done = all(TableLog(self._lake, table).find(NAME, number) is not None for table in WRITTEN)
        written = self._written([] if is_done else files.toArrow().to_pylist(), number, is_done=is_done)
        raw, clean, poison = (
            append(self._lake, table, written[table], writer=NAME, number=number) for table in WRITTEN
        )
        messages, cleaned, quarantined = self.taken_in
        self.taken_in = TakenIn(messages + raw.rows, cleaned + clean.rows, quarantined + poison.rows)

    def _written(self, found: list[dict[str, Any]], number: int, *, is_done: bool) -> Mapping[Table, Write]:
        """What brings the files of each table to where a micro-batch has them, without messages that came again."""
        again = {} if is_done else self._repeats(found, number)
        return {
            table: Moving(
                self._destination.directory(table),
                [each["path"] for each in found if each["table"] == table.full_name],
                {} if table == RAW_MESSAGES else {each["path"]: again.get(each["range"], set()) for each in found},
            )
            for table in WRITTEN
        }

    def _repeats(self, found: list[dict[str, Any]], number: int) -> dict[str, set[int]]:
        """The offsets of messages that were there before, by the ranges that tasks have read.

        What this micro-batch has seen is kept before it comes into any table: only those after it look at that.
        """
        now_us = time.time_ns() // 1_000
        oldest_us = now_us - self._repeats_us
        self._seen.tidy(number, oldest_us)
        ranges = [each for each in found if each["runs"] is not None]
        runs = [np.empty(0, RUN), *(np.frombuffer(each["runs"], RUN).copy() for each in ranges)]
        for place, some in enumerate(runs[1:]):
            some["place"] = place
        repeats, kept = find_repeats(np.concatenate(runs), self._seen.before(number, oldest_us))
        self._seen.keep(kept, number, now_us)
        again: dict[str, set[int]] = {}
        for place, offset in zip(repeats.places.tolist(), repeats.offsets.tolist(), strict=True):
            again.setdefault(ranges[place]["range"], set()).add(offset)
        return again
