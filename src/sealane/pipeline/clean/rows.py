"""Rows of the raw and the clean table, made of what the source yields, on executors; a batch at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.body_columns import clean_bodies
from sealane.pipeline.clean.number_columns import DomainNumbers, clean_headers, clean_keys
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.spark.source.rows.columns import BINARY, MESSAGE_SCHEMA, TEXT

KeptBodies = Literal["left-out", "sealed", "plain"]

_BODY_BYTES = pa.field("bytes", pa.int32())
_SEALED_BY = pa.field("sealed_by", pa.int32())
"""The number of the lake's key that seals the row's body; null where none does."""
_OTHERS = [field for field in MESSAGE_SCHEMA if field.name != "payload"]

RAW_ROWS = pa.schema([*_OTHERS, pa.field("payload", BINARY), _BODY_BYTES, _SEALED_BY])
CLEAN_ROWS = pa.schema(
    [
        *_OTHERS,
        _BODY_BYTES,
        pa.field("body", BINARY),
        pa.field("body_format", TEXT),
        _SEALED_BY,
        pa.field("reason", TEXT),
    ]
)
"""A row with a `reason` is for the quarantine, and has no body."""
UNOPENED = "_unopened"
"""The source's column that tells which payloads are sealed end to end, and why they did not open."""


class Made(NamedTuple):
    """What becomes of some messages."""

    raw: pa.RecordBatch
    """As they were received, but for phone numbers in keys and headers, which are hashed."""
    clean: pa.RecordBatch
    """As they may be kept, and those that cannot be cleaned, each with its `reason`."""


class MessageRows:
    """It travels to executors with the keys and the texts of schemas in it.

    Payloads and bodies are left out, sealed by the lake's keys (`sealed_by` says by which), or plain.
    """

    def __init__(self, keys: LakeKeys, bodies: str, schemas: Mapping[str, TopicSchema]) -> None:
        """`schemas` are by the full names of topics."""
        self._keys = keys
        self._bodies = bodies
        self._schemas = dict(schemas)

    def made_of(self, messages: pa.RecordBatch) -> Made:
        """Rows of both tables; `messages` has the source's columns, and `_unopened`."""
        numbers = DomainNumbers(self._keys)
        payloads, domains = messages["payload"], messages["domain"]
        same = {field.name: messages[field.name] for field in _OTHERS}
        same["key"] = clean_keys(messages["key"], domains, numbers)
        same["headers"] = clean_headers(messages["headers"], domains, numbers)
        same["bytes"] = pc.binary_length(payloads).cast(pa.int32())
        cleaned = clean_bodies(
            payloads,
            (domains, messages["topic"]),
            np.asarray(messages[UNOPENED].is_valid()),
            numbers,
            self._schemas,
            keeps=self._bodies in ("sealed", "plain"),
        )
        payload, payload_sealed_by = self._kept(messages, payloads)
        body, body_sealed_by = self._kept(messages, cleaned.bodies)
        raw = same | {"payload": payload, "sealed_by": payload_sealed_by}
        clean = same | {"body": body, "sealed_by": body_sealed_by}
        clean |= {"body_format": cleaned.formats, "reason": cleaned.reasons}
        return Made(_rows(raw, RAW_ROWS), _rows(clean, CLEAN_ROWS))

    def _kept(self, messages: pa.RecordBatch, bodies: pa.Array | None) -> tuple[pa.Array, pa.Array]:
        """The bodies as the lake may have them, and by which key each is sealed."""
        no_key = pa.nulls(len(messages), pa.int32())
        if bodies is not None and self._bodies == "plain":
            return bodies, no_key
        if bodies is None or self._bodies != "sealed":
            return pa.nulls(len(messages), BINARY), no_key
        sealed = self._keys.seal_column(messages["domain"], messages["id"], bodies)
        newest = pa.scalar(self._keys.newest, pa.int32())
        return sealed, pc.if_else(sealed.is_valid(), newest, pa.scalar(None, pa.int32()))


def _rows(columns: Mapping[str, pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays(
        [columns[name].cast(schema.field(name).type) for name in schema.names], schema=schema
    )
