"""Checking what is published to a topic: by the version that its publisher names, or by the latest."""

from __future__ import annotations

import msgspec

from sealane.errors import SchemaMismatch, SchemaNotFound
from sealane.message import Batch
from sealane.message.schema import ENVELOPE
from sealane.node.schemas.records import SchemaVersion, TopicSchemas
from sealane.schemas import Schema, open_schema

_IDS_SHOWN = 10


class TopicCheck:
    """Of one topic, for as long as its schemas are the same. Each version is read when it is first needed."""

    def __init__(self, topic: str, schemas: TopicSchemas) -> None:
        self._topic = topic
        self._schemas = schemas
        self._by_id = {each.id: each for each in schemas.versions}
        self._opened: dict[int, Schema] = {}

    def admitted(self, batch: Batch) -> Batch:
        """The batch with the id of its schema in its metadata. Raises `SchemaMismatch` if a payload does not fit, and
        `SchemaNotFound` for an id that is none of this topic's.
        """
        named = batch.meta.schema_id
        version = self._schemas.latest if named is None else self._by_id.get(named)
        if version is None:
            raise SchemaNotFound(f"with id {named}", f"{self._topic!r} has {self._ids()}; leave it out for the latest")
        if not self._schemas.validate or not len(batch):
            return batch
        self._check(batch, version)
        if named is None:
            batch = batch.with_meta(msgspec.structs.replace(batch.meta, schema_id=version.id))
        return batch

    def schema(self, version: SchemaVersion) -> Schema:
        found = self._opened.get(version.id)
        if found is None:
            found = self._opened[version.id] = open_schema(version.definition)
        return found

    def _check(self, batch: Batch, version: SchemaVersion) -> None:
        rows = _open_rows(batch)
        if rows is not None and len(rows) < len(batch) and batch.meta.schema_id is None:
            first = next((row for row, known in enumerate(rows) if row != known), len(rows))
            problem = "it is sealed, so whoever seals it checks it, and says by which version: name it by `schema_id`"
            raise SchemaMismatch(self._topic, version.version, first, "$", problem)
        payloads = batch.payloads()
        misfit = self.schema(version).check(payloads if rows is None else [payloads[row] for row in rows])
        if misfit is not None:
            index = misfit.index if rows is None else rows[misfit.index]
            raise SchemaMismatch(self._topic, version.version, index, misfit.path, misfit.problem)

    def _ids(self) -> str:
        ids = [str(each.id) for each in self._schemas.versions[-_IDS_SHOWN:]]
        return f"the ids {', '.join(ids)}" if len(ids) == len(self._by_id) else f"ids up to {ids[-1]}"


def _open_rows(batch: Batch) -> list[int] | None:
    """Which messages are not sealed, end to end; None: all of them."""
    if batch.meta.envelope is not None:
        return []
    if batch.absent >> ENVELOPE & 1:
        return None
    sealed = batch.column(ENVELOPE).is_valid().to_pylist()
    return [row for row, is_sealed in enumerate(sealed) if not is_sealed]
