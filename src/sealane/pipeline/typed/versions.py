"""The tables of a topic, one after the other: a schema that the last can take in adds to it, others begin a new one.

What a table is made of is written beside it, in `_schema.json`: columns never change their names or types, whatever
becomes of the schemas on the node.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import pyarrow as pa

from sealane.errors import CorruptData
from sealane.pipeline.lake.tables import Lake, Table, typed_table
from sealane.pipeline.typed.columns import columns_of, merged, row_schema
from sealane.pipeline.typed.definitions import fields_of
from sealane.schemas.formats import Definition
from sealane.spark.values.spark_type import spark_json_of, type_of_spark_json
from sealane.whole_files import PUBLIC, replace_file

_FILE = "_schema.json"
"""Readers leave it out by its name."""


class TypedVersion(msgspec.Struct, frozen=True):
    """One table of a topic. It travels to executors as text."""

    number: int
    fields: str
    """Every field of its schemas, in Spark's JSON form of a struct."""
    definitions: tuple[Definition, ...]
    """The schemas that it takes, the oldest first."""

    @property
    def fields_type(self) -> pa.StructType:
        return type_of_spark_json(self.fields)

    @property
    def has_rows(self) -> bool:
        """Whether a message may be any number of rows."""
        return any(definition.format == "arrow" for definition in self.definitions)

    @property
    def row_schema(self) -> pa.Schema:
        """Of its files."""
        return row_schema(columns_of(self.fields_type), has_rows=self.has_rows)


def evolved(versions: tuple[TypedVersion, ...], registered: Iterable[Definition]) -> tuple[TypedVersion, ...]:
    """The versions, the oldest first, with what has been registered since, the oldest first too. A schema without
    columns changes nothing.
    """
    known = {definition for version in versions for definition in version.definitions}
    found = list(versions)
    for definition in registered:
        if definition in known or (fields := fields_of(definition)) is None:
            continue
        known.add(definition)
        last = found[-1] if found else None
        both = None if last is None else merged(last.fields_type, fields)
        if last is not None and both is not None:
            found[-1] = TypedVersion(last.number, spark_json_of(both), (*last.definitions, definition))
        else:
            number = 1 if last is None else last.number + 1
            found.append(TypedVersion(number, spark_json_of(fields), (definition,)))
    return tuple(found)


def kept_versions(lake: Lake, topic: str) -> tuple[TypedVersion, ...]:
    """Those that the lake has of a topic, by its full name; the oldest first."""
    tables = [table for table in lake.typed_tables() if table.name.startswith(f"{topic}/")]
    return tuple(sorted((_read(lake, table) for table in tables), key=lambda version: version.number))


def keep_versions(lake: Lake, topic: str, versions: Iterable[TypedVersion]) -> None:
    for version in versions:
        path = lake.path(typed_table(topic, version.number)) / _FILE
        data = msgspec.json.format(msgspec.json.encode(version), indent=2)
        if not path.exists() or path.read_bytes() != data:
            # For everybody, as the tables are.
            path.parent.mkdir(parents=True, exist_ok=True)
            replace_file(path, data, PUBLIC)


def _read(lake: Lake, table: Table) -> TypedVersion:
    path = lake.path(table) / _FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=TypedVersion)
    except (OSError, msgspec.MsgspecError) as error:
        raise CorruptData(
            f"{path} does not say what table {table.full_name} is made of: {error}; restore it, or remove the table's "
            "directory and run: sealane pipeline backfill --typed"
        ) from None
