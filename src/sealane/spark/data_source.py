"""`format("sealane")`: what Spark asks for by that name, to read and to write."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource
from pyspark.sql.types import StructType

from sealane.spark.errors import InvalidOption
from sealane.spark.options.names import check_names
from sealane.spark.options.options import ReadOptions, read_options, write_options
from sealane.spark.source.batch_reader import BatchReader
from sealane.spark.source.registry import with_registered
from sealane.spark.source.spark_types import history_columns, spark_schema
from sealane.spark.source.stream_reader import StreamReader

if TYPE_CHECKING:
    from sealane.spark.sink.writers import BatchWriter, StreamWriter


class SealaneDataSource(DataSource):
    """Topics as DataFrames. Spark makes one on the driver for each `load`, `save` and `start`.

    Options are checked as soon as it is known what they are for: an unknown one at once, those of reading at `load`,
    the rest when the query is planned. No job has started by then.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        check_names(options)

    @classmethod
    def name(cls) -> str:
        return "sealane"

    def schema(self) -> StructType:
        """The columns of messages, and those that a value schema adds. Spark asks only before it reads."""
        return _columns(with_registered(read_options(_plain(self.options))))

    def reader(self, schema: StructType) -> BatchReader:
        options = with_registered(read_options(_plain(self.options), is_stream=False))
        _check_columns(schema, options)
        return BatchReader(options)

    def streamReader(self, schema: StructType) -> StreamReader:
        options = with_registered(read_options(_plain(self.options), is_stream=True))
        _check_columns(schema, options)
        return StreamReader(options)

    def writer(self, schema: StructType, overwrite: bool) -> BatchWriter:
        from sealane.spark.sink.writers import BatchWriter

        options = write_options(_plain(self.options))
        if overwrite:
            raise InvalidOption("mode", "'overwrite' is given, but a topic's messages stay; use mode('append')")
        return BatchWriter(options, schema)

    def streamWriter(self, schema: StructType, overwrite: bool) -> StreamWriter:
        from sealane.spark.sink.writers import StreamWriter

        options = write_options(_plain(self.options))
        if overwrite:
            raise InvalidOption("outputMode", "'complete' is given, but a topic's messages stay; use 'append'")
        return StreamWriter(options, schema)


def _plain(options: Mapping[str, str]) -> dict[str, str]:
    return dict(options.items())


def _columns(options: ReadOptions) -> StructType:
    if options.log == "history":
        return history_columns()
    return spark_schema(options.values(), opens=bool(options.keys))


def _check_columns(given: StructType, options: ReadOptions) -> None:
    """Refuse a schema that the user has given and that is another one than the messages have."""
    ours = _columns(options)
    if [(field.name, field.dataType) for field in given] != [(field.name, field.dataType) for field in ours]:
        raise InvalidOption(
            "schema",
            f"{given.simpleString()} is given, but the columns are {', '.join(ours.fieldNames())}; leave `schema` out, "
            "and say by valueFormat and valueSchema what payloads look like",
        )
