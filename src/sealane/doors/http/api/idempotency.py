"""`Idempotency-Key`: a request that is sent again under the same key is stored once.

The ids of the messages are made of the key, so it is the topic's window of ids that remembers: durable, as long as any
other id, and shared by every door. That a key came with another body before can only be told for some of them.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidArgument
from sealane.message.schema import ID_TYPE

IDEMPOTENCY_KEY_CHARS_MAX = 256
"""It is hashed, and never stored: long enough for whatever a client has."""
KEYS_REMEMBERED_MAX = 10_000
"""Keys of which it is known with what body they came, to tell a client that uses one for two things."""

_SEED_BYTES = 12


class IdempotencyKeys:
    """Those of one door."""

    def __init__(self) -> None:
        self._bodies: OrderedDict[bytes, bytes] = OrderedDict()

    def seed(self, key: str, whose: str, topic: str, body: bytes) -> bytes:
        """Of what the ids are made. Raises `InvalidArgument`: of a key that cannot be one, or that had another body."""
        if not 0 < len(key) <= IDEMPOTENCY_KEY_CHARS_MAX:
            raise InvalidArgument("Idempotency-Key", f"has 1 to {IDEMPOTENCY_KEY_CHARS_MAX} characters")
        seed = hashlib.sha256("\0".join((whose, topic, key)).encode()).digest()[:_SEED_BYTES]
        fingerprint = hashlib.sha256(body).digest()
        if self._bodies.setdefault(seed, fingerprint) != fingerprint:
            problem = "was used for another body before; nothing was stored: take a new key for each request"
            raise InvalidArgument("Idempotency-Key", problem)
        if len(self._bodies) > KEYS_REMEMBERED_MAX:
            self._bodies.popitem(last=False)
        return seed


def ids_of(seed: bytes, count: int) -> pa.Array:
    """So many ids, the same for the same seed: UUIDs of version 8."""
    ids = np.empty((count, 16), dtype=np.uint8)
    ids[:, :_SEED_BYTES] = np.frombuffer(seed, dtype=np.uint8)
    ids[:, _SEED_BYTES:] = np.arange(count, dtype=">u4").view(np.uint8).reshape(count, 4)
    ids[:, 6] = ids[:, 6] & 0x0F | 0x80
    ids[:, 8] = ids[:, 8] & 0x3F | 0x80
    return pa.Array.from_buffers(ID_TYPE, count, [None, pa.py_buffer(ids.tobytes())])
