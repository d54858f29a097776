"""Sealing a batch for its recipients: one random session key, each message by itself under it.

A batch is cut to pieces on its way, and each piece keeps all that its recipient needs: a nonce in front of each
payload, and the envelope, which the batch says once or, for many recipients, in a column. What a message is bound to is
its id alone: dead letters change their topic, and come back. Keys and headers stay as they are, since routing, ordering
and filters read them.

A session key seals one batch and is then forgotten; within it nonces count up, so that no pair of the two ever comes
twice.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

import msgspec
import numpy as np
import pyarrow as pa
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import InvalidArgument, InvalidMessage, LimitExceeded
from sealane.message import Batch, Limits
from sealane.message.batch import BatchMeta, offsets_of
from sealane.message.columns import kept_places, kept_schema, repeated
from sealane.message.schema import ENVELOPE, PAYLOAD
from sealane.security.envelopes.envelope import RECIPIENTS_MAX, SEALED, envelope_bytes, write_body
from sealane.security.envelopes.keys import PublicKey
from sealane.security.envelopes.session import MESSAGE_BYTES_ADDED, NONCE_BYTES, SessionKeys, session_keys
from sealane.security.envelopes.wrapping import kinds_of, new_session

_BINARY = pa.binary()
_NONCE = struct.Struct(f"{NONCE_BYTES}s")
_OFFSET_BYTES = 4
SHARED_ENVELOPE_BYTES_MAX = 2_048
"""An envelope up to this length is said once for a batch, in its metadata, which has room for twice as much; a longer
one, for many recipients, is in a column."""
_NONCES_KEPT = 10_000
"""The first ones, which every batch begins with: half a megabyte."""


class Recipients:
    """The keys that messages are sealed for, each once. Equal if the keys are."""

    __slots__ = ("_keys", "envelope_bytes")

    def __init__(self, keys: Iterable[PublicKey]) -> None:
        """Raises `InvalidArgument` for none, or for more than `RECIPIENTS_MAX`."""
        self._keys = tuple(sorted(set(keys), key=lambda key: key.fingerprint))
        if not self._keys:
            raise InvalidArgument("seal_for", "has no key in it: what is sealed for nobody nobody opens")
        if len(self._keys) > RECIPIENTS_MAX:
            raise InvalidArgument("seal_for", f"is {len(self._keys)} keys, a message is for at most {RECIPIENTS_MAX}")
        self.envelope_bytes = envelope_bytes(kinds_of(self._keys))

    @property
    def is_shared(self) -> bool:
        """Whether a batch says the envelope once, for all of its messages."""
        return self.envelope_bytes <= SHARED_ENVELOPE_BYTES_MAX

    @property
    def bytes_added(self) -> int:
        """By which each message becomes longer."""
        return MESSAGE_BYTES_ADDED + (0 if self.is_shared else self.envelope_bytes + _OFFSET_BYTES)

    def new_session(self, entropy: Callable[[int], bytes]) -> tuple[SessionKeys, bytes]:
        """The keys of one batch, and the envelope by which each of the recipients has them."""
        session_key, wrapped = new_session(self._keys, entropy)
        keys, body = session_keys(session_key), write_body(SEALED, wrapped)
        return keys, body + keys.tag(body)

    def __iter__(self) -> Iterator[PublicKey]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipients) and self._keys == other._keys

    def __hash__(self) -> int:
        return hash(self._keys)

    def __repr__(self) -> str:
        return f"<Recipients {', '.join(key.fingerprint for key in self._keys)}>"


def sealed_bytes(batch: Batch, recipients: Recipients) -> int:
    """What the batch occupies once it is sealed."""
    return batch.nbytes + len(batch) * recipients.bytes_added + (0 if recipients.is_shared else _OFFSET_BYTES)


def seal_batch(batch: Batch, recipients: Recipients, *, limits: Limits, entropy: Callable[[int], bytes]) -> Batch:
    """The same messages with payloads that only the recipients can read.

    Raises `LimitExceeded` if they are too large sealed, and `InvalidMessage` if they are sealed already.
    """
    if batch.meta.envelope is not None or not batch.absent >> ENVELOPE & 1:
        raise InvalidMessage("envelope", "is there already: these messages are sealed; publish them without seal_for")
    if (size := sealed_bytes(batch, recipients)) > limits.batch_bytes_max:
        raise LimitExceeded("sealed batch", limits.batch_bytes_max, size, setting="limits.batch_bytes_max")
    longest = int(np.diff(offsets_of(batch.column(PAYLOAD))).max()) + MESSAGE_BYTES_ADDED
    if longest > limits.payload_bytes_max:
        raise LimitExceeded("sealed payload", limits.payload_bytes_max, longest, setting="limits.payload_bytes_max")
    keys, envelope = recipients.new_session(entropy)
    replaced: dict[int, pa.Array | None] = {PAYLOAD: _sealed_payloads(keys.message, batch)}
    if not recipients.is_shared:
        replaced[ENVELOPE] = repeated(envelope, len(batch))
        return with_columns(batch, replaced)
    meta = msgspec.structs.replace(batch.meta, envelope=envelope)
    return with_columns(batch, replaced, meta)


def with_columns(batch: Batch, replaced: dict[int, pa.Array | None], meta: BatchMeta | None = None) -> Batch:
    """The same batch with these columns in place of its own (None: without that one), under this metadata if any."""
    columns: dict[int, pa.Array] = dict(zip(kept_places(batch.absent), batch.kept.columns, strict=True))
    absent = batch.absent
    for place, column in replaced.items():
        if column is None:
            columns.pop(place, None)
            absent |= 1 << place
        else:
            columns[place] = column
            absent &= ~(1 << place)
    if meta is None:
        meta = batch.meta if absent >> ENVELOPE & 1 else msgspec.structs.replace(batch.meta, envelope=None)
    kept = pa.RecordBatch.from_arrays([columns[place] for place in sorted(columns)], schema=kept_schema(absent))
    return Batch.of_kept(kept, meta, absent, exact=batch.exact)


def _sealed_payloads(key: bytes, batch: Batch) -> pa.Array:
    rows = len(batch)
    nonces = _nonces(rows)
    # Half a microsecond each, three quarters of all that sealing takes: nothing else may happen in this loop.
    sealed = list(map(AESGCM(key).encrypt, nonces, batch.payloads(), batch.ids()))
    data = b"".join(chain.from_iterable(zip(nonces, sealed, strict=True)))
    # Each is longer by the same, so where each begins is known without a look at any of them.
    before = offsets_of(batch.column(PAYLOAD))
    offsets = before - before[0] + np.arange(rows + 1, dtype=np.int32) * np.int32(MESSAGE_BYTES_ADDED)
    return pa.Array.from_buffers(_BINARY, rows, [None, pa.py_buffer(offsets), pa.py_buffer(data)], 0)


def _nonces(count: int) -> list[bytes]:
    """0, 1, 2 and so on: a batch has far fewer messages than the 2^32 that one key may seal."""
    return _first_nonces[:count] if count <= _NONCES_KEPT else _counted(count)


def _counted(count: int) -> list[bytes]:
    numbers = np.zeros((count, NONCE_BYTES), dtype=np.uint8)
    numbers[:, 4:] = np.arange(count, dtype=">u8").view(np.uint8).reshape(count, 8)
    return [nonce for (nonce,) in _NONCE.iter_unpack(numbers.data.cast("B"))]


_first_nonces = _counted(_NONCES_KEPT)
