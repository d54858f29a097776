"""The lake's tables once more, as Delta tables: the same files, linked where that is possible, and a log of Delta's.

A table's mirror is brought to what the table has now by one commit: files that came are added and files that went are
removed. Which files those are is told by the mirror's own log, since a file keeps its name and the moment it was
written in there. So there is nothing to remember beside it: whoever was killed before the commit has changed nothing
that a reader sees, and whoever was killed after it finds nothing left to do.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from sealane.errors import InvalidArgument, MissingExtra, SealaneError
from sealane.pipeline.lake.log import TableLog
from sealane.pipeline.lake.tables import Lake, Table
from sealane.whole_files import sync

if TYPE_CHECKING:
    from deltalake import DeltaTable, Schema

APPLICATION = "sealane-lake"
"""Delta's id for whoever writes: its log has the number of the last transaction, so that of two exports one fails."""

_NO_PARTITION = "__HIVE_DEFAULT_PARTITION__"
_UNUSUAL = re.compile(r"[^\w=./-]")
_MICROSECONDS = "us"


class MirrorDiverged(SealaneError):
    """A table has files that no one Delta table can have."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """What has become of one table's mirror."""

    table: str
    version: int
    """Of the Delta table."""
    rows: int
    """That it has now."""
    files_added: int
    files_removed: int


def check_delta() -> None:
    """Raises `MissingExtra` if the library is not there."""
    try:
        import deltalake  # noqa: F401  # it is looked for, and not used
    except ImportError:
        raise MissingExtra("Delta tables", "deltalake", "delta") from None


def mirror_tables(lake: Lake, directory: Path) -> list[Mirrored]:
    """Bring the mirror of every table to what it has now, under the names that they have in the lake. Have the lake
    meanwhile. Raises `MissingExtra`.
    """
    check_delta()
    if directory.absolute().is_relative_to(lake.root) or lake.root.is_relative_to(directory.absolute()):
        raise InvalidArgument(
            "delta", f"{directory} and the lake, {lake.root}, are within each other; choose another place"
        )
    found = (mirror_table(lake, table, directory / table.layer / table.name) for table in lake.tables())
    return [each for each in found if each is not None]


def mirror_table(lake: Lake, table: Table, target: Path) -> Mirrored | None:
    """The same for one table; None if there has never been anything in it."""
    from deltalake import DeltaTable

    TableLog(lake, table).finish()
    wanted = {_mirrored_name(lake, table, path): path for path in lake.files(table)}
    delta = DeltaTable(target) if DeltaTable.is_deltatable(str(target)) else None
    if delta is None and not wanted:
        return None
    has = set() if delta is None else _files(delta)
    added, removed = sorted(wanted.keys() - has), sorted(has - wanted.keys())
    if added or removed:
        for name in added:
            _link(wanted[name], target / name)
        delta = _commit(delta, target, {name: wanted[name] for name in added}, removed, kept=bool(has - set(removed)))
    assert delta is not None
    _clear(target, wanted)
    return Mirrored(table.full_name, delta.version(), _rows(delta), len(added), len(removed))


def _mirrored_name(lake: Lake, table: Table, path: Path) -> str:
    """A file that was written again, as forgetting does, is another file here. Delta's log escapes some characters of
    paths: these are left out.
    """
    stat = path.stat()
    place = path.relative_to(lake.path(table)).with_suffix("")
    return f"{_UNUSUAL.sub('_', str(place))}-{stat.st_mtime_ns:x}-{stat.st_size:x}.parquet"


def _files(delta: DeltaTable) -> set[str]:
    return set(pa.table(delta.get_add_actions())["path"].to_pylist())


def _rows(delta: DeltaTable) -> int:
    return sum(pa.table(delta.get_add_actions())["num_records"].to_pylist())


def _link(path: Path, mirrored: Path) -> None:
    """A second name for the same bytes: neither the lake nor the mirror ever writes into a file. On another file system
    it is a copy.
    """
    mirrored.parent.mkdir(parents=True, exist_ok=True)
    mirrored.unlink(missing_ok=True)
    try:
        os.link(path, mirrored)
    except OSError:
        draft = mirrored.with_suffix(".draft")
        shutil.copyfile(path, draft)
        sync(draft)
        draft.rename(mirrored)
    sync(mirrored.parent)


def _commit(
    delta: DeltaTable | None, target: Path, added: dict[str, Path], removed: list[str], *, kept: bool
) -> DeltaTable:
    """From here on readers see what the table has. `kept`: some files stay."""
    from deltalake import CommitProperties, DeltaTable, Transaction
    from deltalake.transaction import AddAction, RemoveAction, create_table_with_add_actions

    partitioned_by = list(_partition_of(next(iter(added.values())))) if added else []
    adds = [
        AddAction(
            path=name,
            size=path.stat().st_size,
            partition_values=_partition_of(path),
            modification_time=path.stat().st_mtime_ns // 1_000_000,
            data_change=True,
            stats=msgspec.json.encode({"numRecords": pq.read_metadata(path).num_rows}).decode(),
        )
        for name, path in added.items()
    ]
    number = 0 if delta is None else (delta.transaction_version(APPLICATION) or 0) + 1
    properties = CommitProperties(app_transactions=[Transaction(APPLICATION, number)])
    if delta is None:
        schema = _delta_schema(_merged(added.values(), partitioned_by))
        create_table_with_add_actions(str(target), schema, adds, "error", partitioned_by, commit_properties=properties)
        return DeltaTable(target)
    schema, is_new = _evolved(delta, added, partitioned_by, kept=kept)
    if is_new:
        delta.create_write_transaction([*adds], "overwrite", schema, partitioned_by, commit_properties=properties)
    else:
        now = time.time_ns() // 1_000_000
        removes = [RemoveAction(name, data_change=True, deletion_timestamp=now) for name in removed]
        columns = delta.metadata().partition_columns
        delta.create_write_transaction([*adds, *removes], "append", schema, columns, commit_properties=properties)
    return DeltaTable(target)


def _evolved(
    delta: DeltaTable, added: dict[str, Path], partitioned_by: list[str], *, kept: bool
) -> tuple[Schema, bool]:
    """The schema of the table with these files, which it has from here on; and whether it is another one altogether,
    which a table has that was made anew.
    """
    before = pa.schema(delta.schema())
    if not added:
        return delta.schema(), False
    files = _merged(added.values(), partitioned_by)
    try:
        both = pa.unify_schemas([before, files])
    except pa.ArrowException as error:
        if kept:
            raise MirrorDiverged(
                f"{delta.table_uri} cannot have columns of new files beside the others: {error}"
            ) from None
        return _delta_schema(files), True
    wanted = _delta_schema(both)
    known = {field.name: field for field in delta.schema().fields}
    fields = [field for field in wanted.fields if known.get(field.name) != field]
    if fields:
        _allow(delta, both)
        delta.alter.add_columns(fields)
    return delta.schema(), False


def _allow(delta: DeltaTable, schema: pa.Schema) -> None:
    """Times without a zone are a feature that a table has to name before it has a column of them."""
    from deltalake import TableFeatures

    has_local_times = "timestamp_ntz" in _delta_schema(schema).to_json()
    if has_local_times and "timestampNtz" not in (delta.protocol().writer_features or ()):
        delta.alter.add_feature(TableFeatures.TimestampWithoutTimezone, allow_protocol_versions_increase=True)


def _merged(files: Iterable[Path], partitioned_by: list[str]) -> pa.Schema:
    """The columns of all of these files, and those that their directories say."""
    columns = reduce(_both, (_plain(pq.read_schema(path)) for path in files))
    said = [pa.field(name, pa.date32() if name == "date" else pa.utf8()) for name in partitioned_by]
    return pa.schema([*columns, *said])


def _both(one: pa.Schema, other: pa.Schema) -> pa.Schema:
    return one if one.equals(other) else pa.unify_schemas([one, other])


def _plain(schema: pa.Schema) -> pa.Schema:
    """Without notes of whoever wrote it. Delta has microseconds, and anything may be null."""
    return pa.schema([pa.field(field.name, _in_microseconds(field.type)) for field in schema])


def _in_microseconds(type: pa.DataType) -> pa.DataType:
    return pa.timestamp(_MICROSECONDS, type.tz) if pa.types.is_timestamp(type) else type


def _delta_schema(schema: pa.Schema) -> Schema:
    from deltalake import Schema

    return Schema.from_arrow(schema)


def _partition_of(path: Path) -> dict[str, str | None]:
    """The columns that a file's directories say, in which Spark escapes some characters."""
    said: list[Any] = [part.split("=", 1) for part in path.parts[:-1] if "=" in part]
    return {name: None if value == _NO_PARTITION else unquote(value) for name, value in said}


def _clear(target: Path, wanted: Iterable[str]) -> None:
    """What the table has no more is gone from here too: somebody may have been forgotten in it."""
    kept = {target / name for name in wanted}
    for path in target.rglob("*"):
        if path.suffix in (".parquet", ".draft") and "_delta_log" not in path.parts and path not in kept:
            path.unlink(missing_ok=True)
