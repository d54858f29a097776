"""Messages that senders give are looked into, and kept as they came."""

from __future__ import annotations

import json
import uuid

import pytest

from sealane.errors import InvalidMessage
from sealane.wire.cipher.given import NAMES, given, given_batch, identity_of
from tests.cipher_messages import encrypted, written


def test_a_message_is_kept_byte_by_byte() -> None:
    message = encrypted("one")
    text = json.dumps({**message, "added": 1.50}, indent=1).replace("\n", " ").encode()

    assert given(text) == ("one", text)


def test_the_messages_of_a_batch_are_kept_byte_by_byte() -> None:
    messages = [encrypted(), encrypted()]
    text = f"[ {written(messages[0])} ,{json.dumps(messages[1], separators=(',', ':'))}]".encode()

    found = given_batch(text)
    assert [each.message_id for each in found] == [each["message_id"] for each in messages]
    assert [each.text for each in found] == [
        written(messages[0]).encode(),
        json.dumps(messages[1], separators=(",", ":")).encode(),
    ]


@pytest.mark.parametrize("field", ["message_id", "enc_session_key", "nonce", "tag", "ciphertext"])
def test_a_message_without_one_of_its_fields_is_refused_with_its_name(field: str) -> None:
    message = {name: value for name, value in encrypted().items() if name != field}

    with pytest.raises(InvalidMessage, match=field):
        given(written(message).encode())
    with pytest.raises(InvalidMessage, match=rf"{field}.*\[1\]"):
        given_batch(written([encrypted(), message]).encode())


def test_what_is_not_base64_is_refused_with_its_place() -> None:
    message = {**encrypted(), "tag": "###"}

    with pytest.raises(InvalidMessage, match="tag is not base64"):
        given(written(message).encode())
    with pytest.raises(InvalidMessage, match=r"batch\[2\].tag is not base64"):
        given_batch(written([encrypted(), encrypted(), message]).encode())


def test_an_id_with_a_space_is_refused_with_its_place() -> None:
    with pytest.raises(InvalidMessage, match=r"batch\[1\].message_id"):
        given_batch(written([encrypted(), encrypted("a b")]).encode())


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"1", b'"x"', b"[[[[", b"{}", b"[" * 100_000])
def test_what_is_no_list_of_messages_is_no_batch(text: bytes) -> None:
    with pytest.raises(InvalidMessage, match="batch"):
        given_batch(text)


def test_a_list_of_a_million_numbers_ends_at_the_first_of_them() -> None:
    with pytest.raises(InvalidMessage, match=r"\[0\]"):
        given_batch(b"[" + b"1," * 1_000_000 + b"1]")


def test_an_id_that_is_a_uuid_is_that_one() -> None:
    found = uuid.uuid4()

    assert identity_of(str(found)) == identity_of(str(found).upper()) == found.bytes


@pytest.mark.parametrize("message_id", ["order-1", "x" * 36, "0" * 32, "{12345678-1234-5678-1234-567812345678}"])
def test_any_other_id_has_a_uuid_that_is_always_the_same(message_id: str) -> None:
    assert identity_of(message_id) == uuid.uuid5(NAMES, message_id).bytes
