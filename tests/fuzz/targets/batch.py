"""Arrow batches as they come over the wire."""

from __future__ import annotations

from sealane.errors import SealaneError
from sealane.message import Limits, Row, Stamp, decode, encode, from_payloads, from_rows
from tests.fuzz.target import Target

LIMITS = Limits(batch_messages_max=1000)
_STAMP = Stamp(1_760_000_000_123_456, bytes(range(16)))

_FULL = from_rows(
    [
        Row(
            payload=b"payload %d" % i,
            key=b"key" if i % 2 else None,
            headers={"kind": "é", "number": str(i)} if i % 3 else None,
            priority=1 + i % 10,
            expires_us=10**15 + i if i % 2 else None,
            deliver_at_us=7 if i % 4 else None,
            id=bytes([i]) * 16,
        )
        for i in range(9)
    ],
    _STAMP,
    limits=LIMITS,
)

SEEDS: tuple[bytes, ...] = (
    encode(from_payloads([b"x" * 10] * 5, _STAMP, limits=LIMITS)),
    encode(from_payloads([b"one"], _STAMP, limits=LIMITS, headers={"a": "b"})),
    encode(_FULL),
    encode(_FULL.slice(3, 7)),
)


def check(data: bytes) -> bool:
    try:
        batch = decode(data, limits=LIMITS)
    except SealaneError:
        return False
    batch.records.validate(full=True)
    assert 1 <= len(batch) <= LIMITS.batch_messages_max
    assert len(batch.payloads()) == len(batch.ids()) == len(batch)
    assert batch.nbytes <= LIMITS.batch_bytes_max
    for row in batch.records.to_pylist():
        assert row["id"] is not None
        assert row["payload"] is not None
        assert row["created"] is not None
        assert 1 <= row["priority"] <= 10
        names = [name for name, _ in row["headers"] or ()]
        assert len(set(names)) == len(names)
    assert batch.traits.priority_min >= 1
    assert decode(encode(batch), limits=LIMITS) == batch
    return True


TARGET = Target("batch", SEEDS, check)
