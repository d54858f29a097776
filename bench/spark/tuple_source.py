"""A Python data source as most are written: it yields a tuple for each row. Sealane's is measured beside it.

It reads Parquet files from the local disk, a partition each, so that nothing but its rows costs it anything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

FORMAT = "tuples"


class TupleSource(DataSource):
    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> StructType:
        return from_arrow_schema(pq.read_schema(_files(self.options["path"])[0]))

    def reader(self, schema: StructType) -> DataSourceReader:
        return TupleReader(_files(self.options["path"]))


class TupleReader(DataSourceReader):
    def __init__(self, files: Sequence[str]) -> None:
        self._files = files

    def partitions(self) -> list[InputPartition]:
        return [InputPartition(file) for file in self._files]

    def read(self, partition: InputPartition) -> Iterator[tuple[Any, ...]]:
        for batch in pq.ParquetFile(partition.value).iter_batches():
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _files(path: str) -> list[str]:
    return sorted(str(file) for file in Path(path).glob("*.parquet"))
