"""Proofs and signatures: as `docs/protocol.md` has them, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac as real_hmac
from typing import Any

import msgspec
import pytest

from sealane.errors import BadSignature
from sealane.wire import messages as wire
from sealane.wire.signing import Signer, Verifier, connection_key, login_proof

SECRET = bytes(range(32))
BODY = b"a batch" * 100


def mac(key: bytes, *told: bytes) -> bytes:
    return real_hmac.new(key, b"".join(told), hashlib.sha256).digest()


def a_pair(client_nonce: bytes = b"c" * 16) -> tuple[Signer, Verifier]:
    key = connection_key(SECRET, client_nonce, b"n" * 16)
    return Signer(key), Verifier(key)


def test_a_login_proof_is_made_as_the_protocol_says() -> None:
    wanted = mac(SECRET, b"sealane login v1", b"\0\0\0\x02", b"ab", b"n" * 16, (5).to_bytes(8, "big"))
    assert login_proof(SECRET, "ab", b"n" * 16, 5) == wanted


def test_a_signature_is_made_as_the_protocol_says() -> None:
    request = wire.Publish(7, "orders", 3, behind=2)
    signer, _ = a_pair()
    signer.sign(request, (BODY[:10], memoryview(BODY)[10:]))

    key = mac(SECRET, b"sealane connection v1", b"\0\0\0\x10", b"c" * 16, b"n" * 16)
    signed = msgspec.msgpack.encode([20, 1, 7, "orders", 3, 2])
    assert request.signature == mac(key, b"sealane publish v1", signed, BODY)


def test_what_is_staged_is_signed_as_the_protocol_says() -> None:
    request = wire.Stage(7, "orders")
    signer, _ = a_pair(b"")
    signer.sign(request, (BODY,))

    key = mac(SECRET, b"sealane connection v1", b"\0\0\0\0", b"n" * 16)
    signed = msgspec.msgpack.encode([25, 1, 7, "orders"])
    assert request.signature == mac(key, b"sealane publish v1", signed, BODY)


REQUESTS = [
    wire.Publish(1, "orders"),
    wire.PublishTo(1, "events", "a.b"),
    wire.Transact(1, "t", [("orders", len(BODY))], [("me", wire.LeaseRuns(0, 1, [0, 5]))]),
    wire.Stage(1, "orders"),
]


@pytest.mark.parametrize("request_", REQUESTS, ids=lambda each: type(each).__name__)
def test_what_carries_batches_is_verified_after_its_way_over_the_wire(request_: Any) -> None:
    signer, verifier = a_pair()
    signer.sign(request_, (BODY,))
    came = msgspec.msgpack.decode(msgspec.msgpack.encode(request_), type=type(request_))
    verifier.verify(came, memoryview(BODY))


def test_what_carries_no_batch_is_not_signed_and_takes_no_place() -> None:
    signer, verifier = a_pair()
    signer.sign(wire.ListTopics(1), ())
    verifier.verify(wire.ListTopics(1), memoryview(b""))
    signer.unsent(wire.ListTopics(1))
    request = wire.Publish(2, "orders")
    signer.sign(request, (BODY,))
    assert request.sequence == 1


def test_a_request_that_was_not_sent_leaves_its_place_to_the_next() -> None:
    signer, verifier = a_pair()
    for _ in range(2):
        request = wire.Publish(1, "orders")
        signer.sign(request, (BODY,))
        signer.unsent(request)
    signer.sign(request, (BODY,))
    verifier.verify(request, memoryview(BODY))


def test_the_same_publish_has_another_signature_on_each_connection_and_at_each_place() -> None:
    signatures = set()
    for nonce in (b"c" * 16, b"d" * 16, b""):
        signer, _ = a_pair(nonce)
        for _ in range(2):
            request = wire.Publish(1, "orders")
            signer.sign(request, (BODY,))
            signatures.add(request.signature)
    assert len(signatures) == 6


def test_a_signature_of_a_wrong_sequence_is_refused_though_it_matches() -> None:
    signer, verifier = a_pair()
    first, second = wire.Publish(1, "orders"), wire.Publish(2, "orders")
    signer.sign(first, (BODY,))
    signer.sign(second, (BODY,))
    with pytest.raises(BadSignature, match="1 is next: some before it are missing"):
        verifier.verify(second, memoryview(BODY))
    verifier.verify(first, memoryview(BODY))
    with pytest.raises(BadSignature, match="2 is next: it was repeated"):
        verifier.verify(first, memoryview(BODY))


def test_signatures_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[tuple[bytes, bytes]] = []

    def compare(one: bytes, other: bytes) -> bool:
        compared.append((one, other))
        return real_compare(one, other)

    real_compare = real_hmac.compare_digest
    monkeypatch.setattr(real_hmac, "compare_digest", compare)
    signer, verifier = a_pair()
    request = wire.Publish(1, "orders")
    signer.sign(request, (BODY,))
    verifier.verify(request, memoryview(BODY))
    assert compared == [(request.signature, request.signature)]
