"""The message batch, version 1: the table that producers send, the disk holds, consumers receive and Spark reads."""

from __future__ import annotations

import pyarrow as pa

SCHEMA_VERSION = 1

PRIORITY_MIN = 1
PRIORITY_MAX = 10
PRIORITY_DEFAULT = 5

TIME_US_MAX = 253_402_300_799_999_999
"""The last microsecond of the year 9999: every time in a batch must be one that a `datetime` can hold, from 1970 on."""

HEADERS_TYPE = pa.map_(pa.utf8(), pa.utf8())
TIME_TYPE = pa.timestamp("us", tz="UTC")
ID_TYPE = pa.binary(16)

SCHEMA = pa.schema(
    [
        pa.field("id", ID_TYPE, nullable=False),
        pa.field("key", pa.binary()),
        pa.field("payload", pa.binary(), nullable=False),
        pa.field("headers", HEADERS_TYPE),
        pa.field("priority", pa.int8(), nullable=False),
        pa.field("created", TIME_TYPE, nullable=False),
        pa.field("expires", TIME_TYPE),
        pa.field("deliver_at", TIME_TYPE),
        pa.field("envelope", pa.binary()),
    ]
)

ID, KEY, PAYLOAD, HEADERS, PRIORITY, CREATED, EXPIRES, DELIVER_AT, ENVELOPE = range(9)
"""Places of the columns: looking one up by number costs a third of looking it up by name."""

COLUMNS = 9

NULLABLE = (KEY, HEADERS, EXPIRES, DELIVER_AT, ENVELOPE)
ALL_OPTIONAL = sum(1 << place for place in NULLABLE) | 1 << PRIORITY
"""The columns that may be absent, a bit each: those that may be null, and the priority, which has a default."""
