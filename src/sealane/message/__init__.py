"""The message batch: its schema, limits, ids, building, validation and encoding. Everything else stands on this."""

from __future__ import annotations

from sealane.message.batch import Batch, BatchMeta, Traits
from sealane.message.build import Row, from_payloads, from_rows
from sealane.message.codec import decode, encode, encode_parts, encoding
from sealane.message.ids import Stamp, generate_ids, parse_id
from sealane.message.limits import Limits
from sealane.message.names import OPEN_SYSTEM_TOPICS, check_name, split_topic
from sealane.message.schema import (
    PRIORITY_DEFAULT,
    PRIORITY_MAX,
    PRIORITY_MIN,
    SCHEMA,
    SCHEMA_VERSION,
)
from sealane.message.tables import from_arrow

__all__ = [
    "OPEN_SYSTEM_TOPICS",
    "PRIORITY_DEFAULT",
    "PRIORITY_MAX",
    "PRIORITY_MIN",
    "SCHEMA",
    "SCHEMA_VERSION",
    "Batch",
    "BatchMeta",
    "Limits",
    "Row",
    "Stamp",
    "Traits",
    "check_name",
    "decode",
    "encode",
    "encode_parts",
    "encoding",
    "from_arrow",
    "from_payloads",
    "from_rows",
    "generate_ids",
    "parse_id",
    "split_topic",
]
