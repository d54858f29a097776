"""Clean messages come into the tables of their topics, with a column for each field of what the topic has registered.

It goes by the micro-batches of the clean table, whose files have writer and number in their names. What one has brought
stays there until this is done with it, since files are put together only afterwards; it comes in under the same number.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from sealane.log import get_log
from sealane.pipeline.clean.schemas import registered_schemas
from sealane.pipeline.lake.appending import append, replace
from sealane.pipeline.lake.compacting import WRITER as COMPACTION
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, Lake, Table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.pipeline.typed.files import TOLD, TypeFiles, has_open_bodies, topic_of
from sealane.pipeline.typed.versions import TypedVersion, evolved, keep_versions, kept_versions
from sealane.whole_files import PUBLIC, replace_file

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAME = "typed"
BACKFILL = "backfill"
LOCAL_BYTES = 8 << 20
"""So much of the clean table is done here: starting a job of Spark's would take longer."""

_NUMBERED = re.compile(r"(?P<writer>[a-z-]+)-(?P<number>\d+)-\d+\.parquet")

log = get_log("sealane.pipeline")


def type_new(
    spark: SparkSession, lake: Lake, settings: PipelineSettings, keys: LakeKeys, *, local_bytes: int = LOCAL_BYTES
) -> int:
    """Take in what the clean table has got since the last time, each micro-batch once. Returns how many rows came in.

    Only bodies that the lake has in the open have columns. No row stops it: what does not fit has no values.
    """
    step = _TypedStep(spark, lake, settings, keys, local_bytes)
    done = step.progress.done
    if done is None:
        return step.all_again()
    brought = _brought(lake)
    return sum(step.take(brought[each], each) for each in sorted(brought) if each.number > done.get(each.writer, -1))


def backfill_typed(
    spark: SparkSession, lake: Lake, settings: PipelineSettings, keys: LakeKeys, *, local_bytes: int = LOCAL_BYTES
) -> int:
    """Make the tables again from all that the clean table has, and put that in their place. Returns how many rows they
    have. One that is stopped is done again by the next cycle.
    """
    return _TypedStep(spark, lake, settings, keys, local_bytes).all_again()


class MicroBatch(NamedTuple):
    """Of the clean table."""

    writer: str
    number: int


class Progress:
    """How far it is: by writer of the clean table, the last micro-batch that it is done with. None: nothing is known of
    what the tables have, and all of it is done again.
    """

    def __init__(self, lake: Lake) -> None:
        self._path = lake.root / "state" / NAME / "progress.json"

    @property
    def done(self) -> dict[str, int] | None:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, int])
        except (FileNotFoundError, msgspec.MsgspecError):
            return None

    def keep(self, done: dict[str, int]) -> None:
        replace_file(self._path, msgspec.json.encode(done, order="sorted"), PUBLIC)

    def forget(self) -> None:
        self._path.unlink(missing_ok=True)


class _TypedStep:
    def __init__(
        self, spark: SparkSession, lake: Lake, settings: PipelineSettings, keys: LakeKeys, local_bytes: int
    ) -> None:
        self._spark = spark
        self._lake = lake
        self._settings = settings
        self._keys = keys
        self._local_bytes = local_bytes
        self._work = lake.root / "state" / NAME / "work"
        self.progress = Progress(lake)

    def take(self, files: list[Path], brought: MicroBatch) -> int:
        """What a micro-batch has brought, once, as often as it is called."""
        rows = 0
        for table in self._made(files):
            rows += append(self._lake, table, self._moving(table), writer=brought.writer, number=brought.number).rows
        self._keep((self.progress.done or {}) | {brought.writer: brought.number})
        return rows

    def all_again(self) -> int:
        # Until it is whole nothing is known: some tables have what others have not.
        self.progress.forget()
        done = _last_numbers(self._lake)
        made = self._made(self._lake.files(CLEAN_MESSAGES))
        rows = 0
        for table in {table.name: table for table in (*self._lake.typed_tables(), *made)}.values():
            rows += replace(self._lake, table, self._moving(table), writer=BACKFILL).rows
        self._keep(done)
        return rows

    def _made(self, files: list[Path]) -> list[Table]:
        """Make what these files become, apart from the tables. Returns the tables for which there is something."""
        shutil.rmtree(self._work, ignore_errors=True)
        files = [path for path in files if has_open_bodies(path)]
        topics = self._topics({topic_of(path) for path in files}) if files else {}
        wanted = [path for path in files if topic_of(path) in topics]
        if not wanted:
            return []
        self._make(TypeFiles(self._lake.root, self._work, topics, self._keys), wanted)
        return [table for table in self._lake.typed_tables() if (self._work / table.name).is_dir()]

    def _make(self, type_files: TypeFiles, files: list[Path]) -> None:
        if sum(path.stat().st_size for path in files) <= self._local_bytes:
            for path in files:
                type_files.make(path)
            return
        from pyspark.sql.pandas.types import from_arrow_schema

        paths = self._spark.createDataFrame([(str(path),) for path in files], "path STRING")
        # One task for each: files are as large as what a micro-batch has brought of a topic.
        paths.repartition(len(files)).mapInArrow(type_files, from_arrow_schema(TOLD)).collect()

    def _topics(self, names: set[str]) -> dict[str, tuple[TypedVersion, ...]]:
        """The tables of these topics, those that have any; what was registered since the last time is part of them."""
        found = {}
        registered = registered_schemas(self._settings)
        for name in names:
            kept = kept_versions(self._lake, name)
            versions = evolved(kept, reversed(registered[name].versions)) if name in registered else kept
            if len(versions) > len(kept) > 0:
                log.warning("a topic's schema has changed so much that it gets another table", topic=name)
            if versions:
                keep_versions(self._lake, name, versions)
                found[name] = versions
        return found

    def _moving(self, table: Table) -> Callable[[Path], None]:
        made = self._work / table.name

        def move(staging: Path) -> None:
            staging.parent.mkdir(parents=True, exist_ok=True)
            if made.is_dir():
                made.rename(staging)
            else:
                staging.mkdir()

        return move

    def _keep(self, done: dict[str, int]) -> None:
        self.progress.keep(done)
        shutil.rmtree(self._work, ignore_errors=True)


def _brought(lake: Lake) -> dict[MicroBatch, list[Path]]:
    """Files of the clean table by the micro-batch that brought them, as far as they were not put together since."""
    found: dict[MicroBatch, list[Path]] = {}
    for path in lake.files(CLEAN_MESSAGES):
        name = _NUMBERED.fullmatch(path.name)
        if name is not None and name["writer"] != COMPACTION:
            found.setdefault(MicroBatch(name["writer"], int(name["number"])), []).append(path)
    return found


def _last_numbers(lake: Lake) -> dict[str, int]:
    """The last micro-batch of each writer of the clean table, be its files still there or not."""
    records = lake.log_path(CLEAN_MESSAGES).glob("*/*.json")
    recorded = [MicroBatch(path.parent.name, int(path.stem)) for path in records if path.stem.isdigit()]
    return dict(sorted([*recorded, *_brought(lake)]))
