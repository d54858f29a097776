"""Files of the clean table become files of the topics' tables: on executors if there is much, and here if not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.lake.parquet_files import parquet_writer
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, Lake, typed_table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed.rows import WANTED, TopicRows
from sealane.pipeline.typed.versions import TypedVersion

ROWS_AT_ONCE = 20_000
"""Bodies are held in memory as text, as values and as columns at the same time."""
TOLD = pa.schema([("rows", pa.int64())])
"""What the job answers for each file."""


def topic_of(path: Path) -> str:
    """The full name of the topic whose messages a file has, by its directories; Spark escapes some characters there."""
    laid_out = dict(part.split("=", 1) for part in path.parts if "=" in part)
    return f"{unquote(laid_out['domain'])}/{unquote(laid_out['topic'])}"


def has_open_bodies(path: Path) -> bool:
    """Whether bodies of a file can be read by everybody, as far as its footer tells: some can, or it does not tell."""
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(place) for place in range(file.metadata.num_row_groups)]
        names = {file.schema.column(place).path: place for place in range(len(file.schema))}
    return any(
        _nulls(group, names, "body") < group.num_rows and _nulls(group, names, "sealed_by", group.num_rows) > 0
        for group in groups
    )


def _nulls(group: pq.RowGroupMetaData, names: Mapping[str, int], name: str, missing: int = 0) -> int:
    """How many rows of a group have no such value; `missing` if nobody knows."""
    if name not in names:
        return group.num_rows
    statistics = group.column(names[name]).statistics
    return missing if statistics is None or not statistics.has_null_count else statistics.null_count


class TypeFiles:
    """What `mapInArrow` calls with the paths of files. It travels to executors with the keys and schemas in it."""

    def __init__(self, root: Path, work: Path, topics: Mapping[str, tuple[TypedVersion, ...]], keys: LakeKeys) -> None:
        """What is made goes to `work`, laid out as the lake's tables are, under their names."""
        self._root = root
        self._work = work
        self._topics = dict(topics)
        self._keys = keys

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            rows = [self.make(Path(path)) for path in batch["path"].to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(rows, pa.int64())], schema=TOLD)

    def make(self, path: Path) -> int:
        """Returns how many rows it has made of a file. Doing it again makes the same."""
        topic = topic_of(path)
        versions = self._topics[topic]
        typed = TopicRows(versions, Numbers(self._keys, topic.partition("/")[0]))
        place = path.relative_to(Lake(self._root).path(CLEAN_MESSAGES))
        schemas = {version.number: version.row_schema for version in versions}
        writers: dict[int, pq.ParquetWriter] = {}
        drafts: dict[Path, Path] = {}
        rows = 0
        with pq.ParquetFile(path) as file, ExitStack() as stack:
            for batch in file.iter_batches(ROWS_AT_ONCE, columns=list(WANTED)):
                for part in typed.of(batch):
                    if not len(part.batch):
                        continue
                    if part.version not in writers:
                        made = self._work / typed_table(topic, part.version).name / place
                        made.parent.mkdir(parents=True, exist_ok=True)
                        # Spark may do a task twice at the same time.
                        drafts[made] = made.with_suffix(f".{uuid4().hex}.draft")
                        writer = parquet_writer(drafts[made], schemas[part.version])
                        writers[part.version] = stack.enter_context(writer)
                    writers[part.version].write_batch(part.batch)
                    rows += len(part.batch)
        for made, draft in drafts.items():
            draft.rename(made)
        return rows
