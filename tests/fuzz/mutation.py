"""Valid encodings, and ways to spoil them: what the fuzz target and the property tests have in common."""

from __future__ import annotations

import random

from sealane.errors import SealaneError
from sealane.message import Batch, Limits, Row, Stamp, decode, encode, from_payloads, from_rows

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

INTERESTING: tuple[bytes, ...] = (
    *(bytes([byte]) for byte in (0, 1, 3, 0x7F, 0x80, 0xFF)),
    *(number.to_bytes(4, "little") for number in (0, 1, 8, 9, 1000, 1001, 2**16, 2**31 - 1, 2**31, 2**32 - 1)),
    *(number.to_bytes(8, "little") for number in (0, 1, 8, 1000, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)),
)


def mutate(data: bytes, choose: random.Random, *, bytes_max: int = 4096) -> bytes:
    """A few changes of the kinds that find bugs: bits, boundary numbers, moved pieces, cuts and repeats."""
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            break
        # Most of what a decoder trusts stands in the first few hundred bytes.
        place = choose.randrange(len(changed) if choose.random() < 0.4 else min(len(changed), 800))
        kind = choose.randrange(7)
        if kind == 0:
            changed[place] ^= 1 << choose.randrange(8)
        elif kind in (1, 2):
            value = choose.choice(INTERESTING)
            place -= place % len(value) if kind == 1 else 0
            changed[place : place + len(value)] = value
        elif kind == 3:
            source = choose.randrange(len(changed))
            width = choose.choice((4, 8, 16, 64))
            changed[place : place + width] = changed[source : source + width]
        elif kind == 4 and choose.random() < 0.3:
            del changed[place:]
        elif kind == 5 and choose.random() < 0.3:
            del changed[place : place + choose.choice((1, 4, 8))]
        elif kind == 6 and choose.random() < 0.3:
            changed[place:place] = changed[place : place + choose.choice((1, 8, 64))]
    return bytes(changed[:bytes_max])


def check(data: bytes) -> Batch | None:
    """Decode foreign bytes. Either they are refused by name, or the batch keeps every rule; anything else is a bug."""
    try:
        batch = decode(data, limits=LIMITS)
    except SealaneError:
        return None
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
    return batch
