"""Rows of the raw and the clean table, made of what the source yields, on executors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Literal

import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.message.schema import HEADERS_TYPE
from sealane.pipeline.clean.bodies import CleanBody, clean_body
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.spark.source.rows.columns import BINARY, MESSAGE_SCHEMA, TEXT

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

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


def raw_rows(messages: DataFrame, bodies: str, keys: LakeKeys) -> DataFrame:
    """Messages as they were received, but for phone numbers in keys and headers, which are hashed. Payloads are left
    out, sealed by the lake's keys (`sealed_by` says by which), or plain.
    """
    return _mapped(messages, RawRows(keys, bodies), RAW_ROWS)


def clean_rows(messages: DataFrame, bodies: str, keys: LakeKeys, schemas: Mapping[str, TopicSchema]) -> DataFrame:
    """Messages that may be kept, and those that cannot be cleaned, each with its `reason`."""
    return _mapped(messages, CleanRows(keys, bodies, schemas), CLEAN_ROWS)


def _mapped(messages: DataFrame, rows: RawRows | CleanRows, schema: pa.Schema) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema

    return messages.mapInArrow(rows, from_arrow_schema(schema)).selectExpr("*", "to_date(created) AS date")


class RawRows:
    """What `mapInArrow` calls. It travels to executors with the keys in it."""

    def __init__(self, keys: LakeKeys, bodies: str) -> None:
        self._keys = keys
        self._bodies = bodies

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self._batch, batches)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        payloads = batch["payload"]
        kept, sealed_by = _kept(self._keys, self._bodies, batch, payloads)
        made = _without_numbers(batch, self._keys)
        made |= {"payload": kept, "bytes": pc.binary_length(payloads).cast(pa.int32()), "sealed_by": sealed_by}
        return pa.RecordBatch.from_arrays(
            [made.get(name, _column(batch, name)) for name in RAW_ROWS.names], RAW_ROWS.names
        )


class CleanRows:
    """What `mapInArrow` calls. It travels to executors with the keys and the texts of schemas in it."""

    def __init__(self, keys: LakeKeys, bodies: str, schemas: Mapping[str, TopicSchema]) -> None:
        """`schemas` are by the full names of topics."""
        self._keys = keys
        self._bodies = bodies
        self._schemas = dict(schemas)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return map(self._batch, batches)

    def _batch(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        bodies = self._cleaned(batch)
        cleaned = pa.array([each.body for each in bodies], BINARY)
        kept, sealed_by = _kept(self._keys, self._bodies, batch, cleaned)
        made = _without_numbers(batch, self._keys)
        made |= {
            "bytes": pc.binary_length(batch["payload"]).cast(pa.int32()),
            "body": kept,
            "body_format": pa.array([each.format for each in bodies], TEXT),
            "sealed_by": sealed_by,
            "reason": pa.array([each.reason for each in bodies], TEXT),
        }
        return pa.RecordBatch.from_arrays(
            [made.get(name, _column(batch, name)) for name in CLEAN_ROWS.names], CLEAN_ROWS.names
        )

    def _cleaned(self, batch: pa.RecordBatch) -> list[CleanBody]:
        numbers = _numbers(self._keys, batch)
        columns = (batch[name].to_pylist() for name in ("payload", "domain", "topic", UNOPENED))
        found = []
        for payload, domain, topic, unopened in zip(*columns, strict=True):
            schema = self._schemas.get(f"{domain}/{topic}")
            found.append(clean_body(payload or b"", numbers[domain], schema, is_sealed=unopened is not None))
        return found


def _column(batch: pa.RecordBatch, name: str) -> pa.Array:
    return batch[name] if name in batch.schema.names else None


def _numbers(keys: LakeKeys, batch: pa.RecordBatch) -> dict[str, Numbers]:
    return {domain: Numbers(keys, domain) for domain in batch["domain"].unique().to_pylist()}


def _kept(keys: LakeKeys, kept: str, batch: pa.RecordBatch, bodies: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The bodies as the lake may have them, and by which key each is sealed."""
    no_key = pa.nulls(len(bodies), pa.int32())
    if kept == "plain":
        return bodies, no_key
    if kept != "sealed":
        return pa.nulls(len(bodies), BINARY), no_key
    sealed = keys.seal_column(batch["domain"], batch["id"], bodies)
    return sealed, pc.if_else(sealed.is_valid(), pa.scalar(keys.newest, pa.int32()), pa.scalar(None, pa.int32()))


def _without_numbers(batch: pa.RecordBatch, keys: LakeKeys) -> dict[str, pa.Array]:
    """Keys and headers, as far as there are any."""
    numbers = _numbers(keys, batch)
    domains = batch["domain"].to_pylist()
    found = {}
    if batch["key"].null_count < len(batch):
        rows = zip(domains, batch["key"].to_pylist(), strict=True)
        found["key"] = pa.array([key and numbers[domain].in_bytes(key) for domain, key in rows], BINARY)
    if batch["headers"].null_count < len(batch):
        some = zip(domains, batch["headers"].to_pylist(), strict=True)
        headers = [each and numbers[domain].in_headers(each) for domain, each in some]
        found["headers"] = pa.array(headers, HEADERS_TYPE)
    return found
