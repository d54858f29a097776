"""Opening what was sealed for us, a column at a time: consumers do it with batches, Spark's executors with columns."""

from __future__ import annotations

import hmac
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import pyarrow as pa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from sealane.errors import InvalidArgument
from sealane.message.arrow_compute import pc
from sealane.security.envelopes.envelope import FOREIGN, Envelope, InvalidEnvelope, read_envelope
from sealane.security.envelopes.foreign import open_foreign
from sealane.security.envelopes.keys import PrivateKey
from sealane.security.envelopes.session import NONCE_BYTES, session_keys
from sealane.security.envelopes.wrapping import FOREIGN_KEY_BYTES, SESSION_KEY_BYTES, unwrap

SESSIONS_CACHED = 1_024
"""Envelopes whose session key is remembered: those of one batch come again and again."""
OPENING_KEYS_MAX = 64
"""Private keys of one reader: an envelope that does not say whose it is is tried with each of them."""

_TO_THE_END = 2**31 - 1
"""Longer than any value of a binary column can be."""

NOT_FOR_US = "it was not sealed for any of the keys that this consumer has, or its envelope was changed"
CHANGED = "it was changed since it was sealed, or belongs to another message"
NOT_SEALED = "it is not sealed, and this consumer takes only what is"

Open = Callable[[Sequence[bytes], pa.Array], list[bytes]]
"""From messages' ids and sealed payloads to their payloads; raises `InvalidTag` or `ValueError` if one is not right."""


class OpeningKeys:
    """A reader's private keys, and the session keys they have opened lately."""

    def __init__(self, keys: PrivateKey | Iterable[PrivateKey]) -> None:
        self._keys = (keys,) if isinstance(keys, PrivateKey) else tuple(keys)
        if not self._keys or not all(isinstance(key, PrivateKey) for key in self._keys):
            raise InvalidArgument("keys", "give one or several `sealane.PrivateKey`")
        if len(self._keys) > OPENING_KEYS_MAX:
            raise InvalidArgument("keys", f"are {len(self._keys)}, at most {OPENING_KEYS_MAX} can be given")
        self._sessions: OrderedDict[bytes, Open | str] = OrderedDict()

    def session(self, envelope: bytes) -> Open | str:
        """What opens the messages under this envelope, or why nothing does."""
        found = self._sessions.get(envelope)
        if found is None:
            found = self._sessions[envelope] = self._unwrapped(envelope)
            if len(self._sessions) > SESSIONS_CACHED:
                self._sessions.popitem(last=False)
        return found

    def _unwrapped(self, data: bytes) -> Open | str:
        try:
            envelope = read_envelope(data)
        except InvalidEnvelope as error:
            return f"its envelope cannot be read: {error}"
        for key in self._keys:
            for wrapped in envelope.wrapped:
                session_key = unwrap(wrapped, key)
                if session_key is not None and (found := _opener(envelope, session_key)) is not None:
                    return found
        return NOT_FOR_US

    def __repr__(self) -> str:
        return f"<OpeningKeys {', '.join(key.public.fingerprint for key in self._keys)}>"


def _opener(envelope: Envelope, session_key: bytes) -> Open | None:
    """None if the session key is not the one that this envelope was made with."""
    if envelope.scheme == FOREIGN:
        return open_foreign(session_key) if len(session_key) in FOREIGN_KEY_BYTES else None
    if len(session_key) != SESSION_KEY_BYTES:
        return None
    keys = session_keys(session_key)
    if not hmac.compare_digest(keys.tag(envelope.body), envelope.tag):
        return None
    decrypt = AESGCM(keys.message).decrypt

    def open_all(ids: Sequence[bytes], payloads: pa.Array) -> list[bytes]:
        # Cut as columns: in a loop over messages that would take a fifth of all the time.
        nonces = pc.binary_slice(payloads, 0, NONCE_BYTES).to_pylist()
        sealed = pc.binary_slice(payloads, NONCE_BYTES, _TO_THE_END).to_pylist()
        return list(map(decrypt, nonces, sealed, ids))

    return open_all


class OpenedColumns(NamedTuple):
    payloads: list[bytes | None]
    """None where there is a problem."""
    problems: Mapping[int, str]
    """By row: why it could not be opened."""


def open_columns(
    ids: Sequence[bytes],
    payloads: pa.Array,
    envelopes: pa.Array | bytes,
    keys: OpeningKeys,
    *,
    require_sealed: bool = False,
) -> OpenedColumns:
    """The payloads as their sender wrote them, each under its own envelope or all under one.

    A row without an envelope is not sealed, and comes as it is unless `require_sealed`. Nothing is raised for what
    anybody may have sent: each such row is told with its problem.
    """
    opened: list[bytes | None] = []
    problems: dict[int, str] = {}
    runs = [(0, len(payloads), envelopes)] if isinstance(envelopes, bytes) else _runs(envelopes)
    for start, stop, envelope in runs:
        if envelope is not None:
            session = keys.session(envelope)
            some = _open_run(ids[start:stop], payloads[start:stop], session, problems, start)
        elif require_sealed:
            problems.update(dict.fromkeys(range(start, stop), NOT_SEALED))
            some = [None] * (stop - start)
        else:
            some = payloads[start:stop].to_pylist()
        opened.extend(some)
    return OpenedColumns(opened, problems)


def _runs(envelopes: pa.Array) -> Iterator[tuple[int, int, bytes | None]]:
    """Rows that share an envelope and follow each other: usually all of a batch."""
    if not len(envelopes):
        return
    encoded = pc.run_end_encode(envelopes)
    start = 0
    for stop, envelope in zip(encoded.run_ends.to_pylist(), encoded.values.to_pylist(), strict=True):
        yield start, stop, envelope
        start = stop


def _open_run(
    ids: Sequence[bytes], payloads: pa.Array, session: Open | str, problems: dict[int, str], start: int
) -> Sequence[bytes | None]:
    if isinstance(session, str):
        problems.update(dict.fromkeys(range(start, start + len(payloads)), session))
        return [None] * len(payloads)
    try:
        return session(ids, payloads)
    except (InvalidTag, ValueError):
        # Nearly always all of them are right; only now it matters which one is not.
        opened: list[bytes | None] = []
        for place, message_id in enumerate(ids):
            try:
                opened += session([message_id], payloads[place : place + 1])
            except (InvalidTag, ValueError):
                problems[start + place] = CHANGED
                opened.append(None)
        return opened
