"""A line is a command, or it is said what was expected."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidArgument, InvalidMessage, SealaneError
from sealane.wire.cipher.commands import (
    USAGES,
    Ack,
    Bind,
    Command,
    Consume,
    DeclareExchange,
    DeclareQueue,
    Fetch,
    Publish,
    PublishBatch,
    read_command,
)
from sealane.wire.cipher.message import MESSAGE_ID_CHARS_MAX


@pytest.mark.parametrize(
    ("line", "command"),
    [
        (b"declare_queue orders", DeclareQueue("orders")),
        (b"declare_exchange ex", DeclareExchange("ex")),
        (b"bind orders ex new", Bind("orders", "ex", "new")),
        (b'publish ex new {"message_id": "a b"}', Publish("ex", "new", b'{"message_id": "a b"}')),
        (b"publish_batch ex new [{}, {}]", PublishBatch("ex", "new", b"[{}, {}]")),
        (b"consume orders", Consume("orders")),
        (b"fetch orders", Fetch("orders")),
        (b"ack 1234", Ack("1234")),
        ("bind Straße ex schlüssel".encode(), Bind("Straße", "ex", "schlüssel")),
    ],
)
def test_every_command_is_read(line: bytes, command: Command) -> None:
    assert read_command(line) == command


@pytest.mark.parametrize("line", [b"consume q\r", b"  consume   q  ", b"consume\tq"])
def test_spaces_and_a_carriage_return_are_no_part_of_a_word(line: bytes) -> None:
    assert read_command(line) == Consume("q")


def test_the_end_of_a_line_is_no_part_of_the_json() -> None:
    assert read_command(b'publish ex k {"a": 1} \r') == Publish("ex", "k", b'{"a": 1}')


@pytest.mark.parametrize("line", [b"", b"   ", b"\r", b"\t \r"])
def test_a_blank_line_is_no_command(line: bytes) -> None:
    assert read_command(line) is None


@pytest.mark.parametrize("name", USAGES)
def test_a_command_without_its_words_is_told_how_it_is_written(name: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_command(name.encode())
    assert f"`{USAGES[name]}`" in str(refused.value)


@pytest.mark.parametrize("line", [b"declare_queue a b", b"bind a b", b"bind a b c d", b"publish ex k", b"ack a b"])
def test_a_command_with_other_words_than_it_has_is_refused(line: bytes) -> None:
    with pytest.raises(InvalidArgument):
        read_command(line)


def test_what_is_no_command_is_told_all_that_are() -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_command(b"PUBLISH ex k {}")
    assert all(name in str(refused.value) for name in ["'PUBLISH'", *USAGES])


def test_of_a_long_word_only_the_beginning_is_repeated() -> None:
    with pytest.raises(InvalidArgument) as refused:
        read_command(b"x" * 1_000_000)
    assert len(str(refused.value)) < 300


def test_what_is_not_utf_8_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="not UTF-8"):
        read_command(b'publish ex k {"message_id": "\xff"}')


@pytest.mark.parametrize("message_id", ["x" * (MESSAGE_ID_CHARS_MAX + 1), "a\x00b", "a\u2028b"])
def test_what_can_be_no_id_cannot_be_acknowledged(message_id: str) -> None:
    with pytest.raises(InvalidMessage):
        read_command(f"ack {message_id}".encode())


LIKE_COMMANDS = st.builds(lambda name, rest: name.encode() + b" " + rest, st.sampled_from([*USAGES]), st.binary())


@given(st.one_of(st.binary(), LIKE_COMMANDS))
def test_any_line_is_a_command_or_a_refusal(line: bytes) -> None:
    with suppress(SealaneError):
        read_command(line.replace(b"\n", b""))
