"""Messages as publishers write them: what becomes of each field, and how mistakes are named."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import msgspec
import pytest

from sealane.doors.http.message_shape import PackedMessage, batch_of, read, read_messages, rows_of
from sealane.errors import InvalidBatch, InvalidMessage, LimitExceeded
from sealane.message import Limits, Row
from sealane.node.outgoing import SECONDS_MAX, Outgoing
from sealane.node.surroundings import Surroundings

NOW_US = 1_700_000_000_000_000
IDENTITY = UUID("0192f0c1-5c1e-7b6a-9c1e-0123456789ab")


def outgoing(**limits: int) -> Outgoing:
    return Outgoing(Limits(**limits), Surroundings(lambda: NOW_US, bytes))


def rows(body: Any, **limits: int) -> list[Row]:
    return rows_of(read_messages(json.dumps(body).encode()), outgoing(**limits))


def refusal(body: Any, **limits: int) -> InvalidMessage:
    with pytest.raises(InvalidMessage) as refused:
        batch_of(read_messages(json.dumps(body).encode()), outgoing(**limits))
    return refused.value


def test_one_message_is_an_object_with_its_payload_as_text() -> None:
    assert rows({"payload": "grüß"}) == [Row("grüß".encode())]


def test_several_messages_keep_their_order() -> None:
    assert rows({"messages": [{"payload": "a"}, {"payload": ""}]}) == [Row(b"a"), Row(b"")]


def test_bytes_that_are_no_text_are_given_in_base64() -> None:
    assert rows({"payload_base64": "AP8=", "key_base64": "/w=="}) == [Row(b"\x00\xff", key=b"\xff")]


def test_every_field_of_a_message_finds_its_place() -> None:
    given = {
        "payload": "p",
        "key": "k",
        "headers": {"region": "eu"},
        "priority": 9,
        "ttl": 60,
        "delay": 1.5,
        "id": str(IDENTITY),
    }
    assert rows(given) == [Row(b"p", b"k", {"region": "eu"}, 9, NOW_US + 60_000_000, NOW_US + 1_500_000, IDENTITY)]


def test_what_is_null_counts_as_not_given() -> None:
    assert rows({"payload": "p", "key": None, "headers": None, "ttl": None, "id": None}) == [Row(b"p")]


def test_messagepack_has_the_bytes_themselves() -> None:
    decode = msgspec.msgpack.Decoder(list[PackedMessage]).decode
    given = msgspec.msgpack.encode([{"payload": b"\x00\xff", "key": b"k", "id": str(IDENTITY)}])
    assert rows_of(read(decode, given), outgoing()) == [Row(b"\x00\xff", key=b"k", id=IDENTITY)]


@pytest.mark.parametrize(
    ("message", "field"),
    [
        ({"payload": 1}, "messages[1].payload"),
        ({}, "messages[1]"),
        ({"payload": "a", "payload_base64": "YQ=="}, "messages[1]"),
        ({"payload": "a", "key": "k", "key_base64": "aw=="}, "messages[1]"),
        ({"payload_base64": "a"}, "messages[1].payload_base64"),
        ({"payload_base64": "a-_="}, "messages[1].payload_base64"),
        ({"payload_base64": "ä"}, "messages[1].payload_base64"),
        ({"payload": "a", "key_base64": "?"}, "messages[1].key_base64"),
        ({"payload": "a", "headers": {"n": 1}}, "messages[1].headers[...]"),
        ({"payload": "a", "priority": 0}, "messages[1].priority"),
        ({"payload": "a", "priority": 11}, "messages[1].priority"),
        ({"payload": "a", "priority": True}, "messages[1].priority"),
        ({"payload": "a", "ttl": 0}, "messages[1].ttl"),
        ({"payload": "a", "ttl": SECONDS_MAX + 1}, "messages[1].ttl"),
        ({"payload": "a", "delay": -1}, "messages[1].delay"),
        ({"payload": "a", "id": "no uuid"}, "messages[1].id"),
        ({"payload": "a", "Key": "k"}, "messages[1]"),
    ],
)
def test_a_mistake_names_the_message_and_the_field(message: dict[str, Any], field: str) -> None:
    refused = refusal({"messages": [{"payload": "fine"}, message, {"payload": "fine"}]})
    assert refused.field == field
    assert str(refused).startswith(f"message refused: {field} ")


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff", b'{"payload": "\xff"}', b"[]", b"null", b'{"payload": "\\ud800"}', b'{"x":' + b"[" * 100_000],
)
def test_what_is_no_json_object_is_refused_as_such(body: bytes) -> None:
    with pytest.raises(InvalidMessage) as refused:
        read_messages(body)
    assert refused.value.field == "body"


@pytest.mark.parametrize(
    ("message", "field", "limits"),
    [
        ({"payload": "1234"}, "messages[1].payload", {"payload_bytes_max": 3}),
        ({"payload": "123", "key": "1234"}, "messages[1].key", {"key_bytes_max": 3}),
        ({"payload": "123", "headers": {"ab": "cd"}}, "messages[1].header", {"header_bytes_max": 3}),
        ({"payload": "123", "headers": {"a": "", "b": ""}}, "messages[1].headers", {"headers_max": 1}),
    ],
)
def test_a_message_beyond_a_limit_is_named_with_the_limit(
    message: dict[str, Any], field: str, limits: dict[str, int]
) -> None:
    refused = refusal({"messages": [{"payload": "123"}, message, {"payload": "123"}]}, **limits)
    assert isinstance(refused, LimitExceeded)
    assert (refused.field, refused.setting) == (field, f"limits.{next(iter(limits))}")


def test_the_first_of_two_mistakes_is_named() -> None:
    messages = [{"payload": "1234" if index in (5, 9) else "1"} for index in range(16)]
    assert refusal({"messages": messages}, payload_bytes_max=3).field == "messages[5].payload"


def test_what_is_too_much_only_together_is_told_of_the_batch() -> None:
    refused = refusal({"messages": [{"payload": "a" * 600}] * 4}, batch_bytes_max=2_000)
    assert refused.field == "batch"


def test_ids_are_given_for_all_messages_or_for_none() -> None:
    refused = refusal({"messages": [{"payload": "a", "id": str(IDENTITY)}, {"payload": "b"}]})
    assert refused.field == "id"
    assert "missing in 1 of 2" in refused.problem


def test_no_messages_at_all_are_no_batch() -> None:
    with pytest.raises(InvalidBatch):
        batch_of(read_messages(b'{"messages": []}'), outgoing())


def test_a_payload_is_never_in_an_error() -> None:
    for body in ({"payload_base64": "secret!"}, {"payload": "secret", "id": "secret"}, {"payload": ["secret"]}):
        assert "secret" not in str(refusal(body))
