"""Signatures of webhooks, against the specification's own example and a check that was written on its own."""

from __future__ import annotations

import base64
import hashlib
import hmac

from sealane.node.webhooks.records import Owner, Secret, Webhook
from sealane.node.webhooks.signing import SECRET_BYTES, request_id, signature, written_secret

# From the test suite of the specification's libraries.
EXAMPLE_SECRET = base64.b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
EXAMPLE_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
EXAMPLE_BODY = b'{"test": 2432232314}'
EXAMPLE_SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def verified(secret: str, headers: dict[str, str], body: bytes) -> bool:
    """As a receiver would; nothing of the code under test is used."""
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    return any(
        version == "v1" and hmac.compare_digest(given, expected)
        for version, _, given in (each.partition(",") for each in headers["webhook-signature"].split())
    )


def headers(secrets: list[bytes], body: bytes) -> dict[str, str]:
    return {
        "webhook-id": EXAMPLE_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": signature(secrets, EXAMPLE_ID, 1_614_265_330, body),
    }


def test_the_example_of_the_specification_is_signed_as_it_says() -> None:
    assert signature([EXAMPLE_SECRET], EXAMPLE_ID, 1_614_265_330, EXAMPLE_BODY) == EXAMPLE_SIGNATURE
    assert written_secret(EXAMPLE_SECRET) == "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_receiver_with_either_secret_accepts_a_request_during_a_rotation() -> None:
    old, new, other = b"o" * SECRET_BYTES, b"n" * SECRET_BYTES, b"x" * SECRET_BYTES
    sent = headers([new, old], EXAMPLE_BODY)
    assert len(sent["webhook-signature"].split(" ")) == 2
    assert verified(written_secret(new), sent, EXAMPLE_BODY)
    assert verified(written_secret(old), sent, EXAMPLE_BODY)
    assert not verified(written_secret(other), sent, EXAMPLE_BODY)


def test_a_changed_body_id_or_time_is_not_accepted() -> None:
    secret = written_secret(EXAMPLE_SECRET)
    sent = headers([EXAMPLE_SECRET], EXAMPLE_BODY)
    assert verified(secret, sent, EXAMPLE_BODY)
    assert not verified(secret, sent, EXAMPLE_BODY + b" ")
    assert not verified(secret, {**sent, "webhook-id": "msg_other"}, EXAMPLE_BODY)
    assert not verified(secret, {**sent, "webhook-timestamp": "1614265331"}, EXAMPLE_BODY)


def test_the_same_messages_have_the_same_request_id_and_others_another() -> None:
    assert request_id(["a"]) == "a"
    assert request_id(["a", "b"]) == request_id(["a", "b"])
    assert len({request_id(each) for each in (["a", "b"], ["b", "a"], ["a", "b", "c"], ["ab"])}) == 4
    assert "." not in request_id(["a", "b"])


def test_a_secret_signs_until_its_end_and_is_in_no_repr() -> None:
    new, old = Secret(b"new secret", 10), Secret(b"old secret", 1, ends_us=20)
    owner = Owner("anna", "shop", "key")
    webhook = Webhook("shop/orders", 1, "billing", "https://hooks.example/?token=t0p", (new, old), owner, 1, 15, 1)
    assert webhook.signing(19) == [b"new secret", b"old secret"]
    assert webhook.signing(20) == [b"new secret"]
    for shown in (repr(webhook), repr(new), repr([webhook.secrets])):
        assert "secret'" not in shown
        assert "t0p" not in shown
