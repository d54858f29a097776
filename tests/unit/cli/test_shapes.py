"""Messages as JSON: what `consume --json` writes, and `publish --jsonl` reads."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import Any

import pytest

from sealane.cli.formats import Format
from sealane.cli.peeking import StoredMessage
from sealane.cli.shapes import message_object, read_message
from sealane.errors import InvalidMessage


def stored(**columns: Any) -> StoredMessage:
    row = {
        "id": uuid.UUID(int=7).bytes,
        "payload": b"hello",
        "key": None,
        "headers": None,
        "priority": 5,
        "created": datetime(2026, 1, 31, tzinfo=UTC),
        **columns,
    }
    return StoredMessage(1, 42, row)


def test_text_is_text_and_other_bytes_are_base64() -> None:
    assert message_object(stored(key=b"k", headers=[("a", "b")])) == {
        "id": "00000000-0000-0000-0000-000000000007",
        "payload": "hello",
        "key": "k",
        "headers": {"a": "b"},
        "priority": 5,
        "created": "2026-01-31T00:00:00+00:00",
        "partition": 1,
        "offset": 42,
    }
    shape = message_object(stored(payload=b"\xff\x00", key=b"\xfe"))
    assert (shape["payload_base64"], shape["key_base64"]) == ("/wA=", "/g==")
    assert "payload" not in shape
    assert "key" not in shape


@pytest.mark.parametrize("payload", [b"hello", b"\xff\x00", b"", "ä\n\t".encode()])
@pytest.mark.parametrize("key", [None, b"k", b"\xfe"])
def test_what_was_consumed_can_be_published_again(payload: bytes, key: bytes | None) -> None:
    written = Format.json.write(stored(payload=payload, key=key, headers=[("a", "b")], priority=7))
    read = read_message(written)

    assert read == {
        "payload": payload,
        **({} if key is None else {"key": key}),
        "headers": {"a": "b"},
        "priority": 7,
        "id": "00000000-0000-0000-0000-000000000007",
    }


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"hello", "not JSON"),
        (b"[1]", "not a JSON object"),
        (b"{}", "payload is missing"),
        (b'{"payload": 5}', "payload must be text"),
        (b'{"payload": "a", "payload_base64": "YQ=="}', "twice"),
        (b'{"payload_base64": "!"}', "not base64"),
        (b'{"payload": "a", "prio": 3}', "prio is no field of a message"),
        (b'{"payload": "a", "priority": "high"}', "priority is a JSON str"),
        (b'{"payload": "a", "priority": true}', "priority is a JSON bool"),
        (b'{"payload": "a", "headers": []}', "headers is a JSON list"),
        (b'{"payload": "a", "ttl": "1s"}', "ttl is a JSON str"),
        (b"\xff", "not JSON"),
    ],
)
def test_a_line_that_is_no_message_is_refused(line: bytes, problem: str) -> None:
    with pytest.raises(InvalidMessage, match=problem):
        read_message(line)


def test_each_format_writes_what_it_says() -> None:
    message = stored(key=b"k", headers=[("region", "eu")], priority=9)

    assert Format.raw.write(message) == b"hello"
    assert Format.text.write(message) == b"hello\n"
    assert json.loads(Format.json.write(message))["payload"] == "hello"
    about, payload = Format.verbose.write(message).splitlines()
    assert payload == b"hello"
    assert about.startswith(b"# 1@42  ")
    assert about.endswith(b"key=k  priority=9  region=eu")


def test_what_is_told_about_a_message_is_one_line_and_moves_no_cursor() -> None:
    message = stored(key=b"a\x1b[2J\nb", headers=[("name", "line\nbreak")])

    about, _ = Format.verbose.write(message).splitlines()
    assert b"\x1b" not in about
    assert b"key=a\\x1b[2J\\nb" in about
