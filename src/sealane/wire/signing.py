"""Proofs by a secret that is never sent: at the login, and on each publish of a connection.

Whoever has an API key proves it in `Hello` by a MAC over a nonce and the time. From the same secret, that nonce and the
one of `Welcome`, both ends derive a key for this connection alone, which signs every request that carries batches. The
signatures count up: a request that is repeated, left out, moved, changed or taken from another connection is found.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from sealane.errors import BadSignature
from sealane.wire.frames import Buffer
from sealane.wire.messages import Publish, PublishTo, Stage, Transact

NONCE_BYTES = 16
SIGNATURE_BYTES = 32

_LOGIN = b"sealane login v1"
_CONNECTION = b"sealane connection v1"
_PUBLISH = b"sealane publish v1"

_encode = msgspec.msgpack.Encoder().encode

_SIGNED: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    Publish: lambda request: (20, request.sequence, request.call, request.topic, request.after, request.behind),
    PublishTo: lambda request: (
        22,
        request.sequence,
        request.call,
        request.exchange,
        request.routing_key,
        request.behind,
    ),
    Transact: lambda request: (
        24,
        request.sequence,
        request.call,
        request.transaction,
        request.publishes,
        request.acks,
    ),
    Stage: lambda request: (25, request.sequence, request.call, request.topic),
}
"""What is signed of each request that carries batches, beside its body: all that it says."""


def login_proof(secret: bytes, key_id: str, nonce: bytes, time_us: int) -> bytes:
    """What shows that one has the secret of a key, at this time and once."""
    name = key_id.encode()
    told = b"".join((_LOGIN, len(name).to_bytes(4, "big"), name, nonce, time_us.to_bytes(8, "big", signed=True)))
    return hmac.digest(secret, told, "sha256")


def connection_key(secret: bytes, client_nonce: bytes, node_nonce: bytes) -> bytes:
    """The key that signs on one connection. Each end has put a nonce into it, so that it is never the same again."""
    told = b"".join((_CONNECTION, len(client_nonce).to_bytes(4, "big"), client_nonce, node_nonce))
    return hmac.digest(secret, told, "sha256")


def _signature(key: bytes, request: Any, body: Sequence[Buffer]) -> bytes:
    made = hmac.new(key, _PUBLISH, "sha256")
    # A MessagePack array tells where it ends, so nothing of it can pass for a part of the body.
    made.update(_encode(_SIGNED[type(request)](request)))
    for piece in body:
        made.update(piece)
    return made.digest()


class Signer:
    """The client's end of one connection."""

    __slots__ = ("_key", "_sequence")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sequence = 0

    def sign(self, request: Any, body: Sequence[Buffer]) -> None:
        """Give a request its place and its signature, if it carries batches. Its call must be set, and nothing that is
        signed later may be sent before it.
        """
        if type(request) not in _SIGNED:
            return
        self._sequence += 1
        request.sequence = self._sequence
        request.signature = _signature(self._key, request, body)

    def unsent(self, request: Any) -> None:
        """The request, of which the signature is the last that was made, is not sent: its place is free."""
        if type(request) in _SIGNED:
            self._sequence -= 1


class Verifier:
    """The node's end of one connection."""

    __slots__ = ("_key", "_sequence")

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._sequence = 0

    def verify(self, request: Any, body: memoryview) -> None:
        """Raises `BadSignature` for a request that carries batches. After that nothing that comes by this connection
        can be trusted any more.
        """
        if type(request) not in _SIGNED:
            return
        if not request.signature:
            raise BadSignature("it has none, and clients with an API key sign each publish")
        if not hmac.compare_digest(_signature(self._key, request, (body,)), request.signature):
            raise BadSignature("it does not match: the request was changed on its way, or is of another connection")
        expected = self._sequence + 1
        if request.sequence != expected:
            problem = "it was repeated" if request.sequence < expected else "some before it are missing"
            raise BadSignature(f"its sequence is {request.sequence}, {expected} is next: {problem}")
        self._sequence = expected
