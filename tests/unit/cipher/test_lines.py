"""What a client writes and reads."""

from __future__ import annotations

import json

import pytest

from sealane.cipher.errors import UnexpectedAnswer
from sealane.cipher.lines import (
    Pushed,
    acknowledge,
    acknowledged_of,
    bind,
    confirmed_of,
    consume,
    declare_exchange,
    declare_queue,
    problem_of,
    publish,
    read_line,
)
from sealane.errors import InvalidArgument
from sealane.wire.cipher import commands
from sealane.wire.cipher.commands import read_command
from tests.unit.cipher.sealed import message


def test_every_command_is_read_by_a_door_as_it_was_meant() -> None:
    one, two = message("a"), message("b")
    assert read_command(declare_queue("q").line) == commands.DeclareQueue("q")
    assert read_command(declare_exchange("x").line) == commands.DeclareExchange("x")
    assert read_command(bind("q", "x", "k").line) == commands.Bind("q", "x", "k")
    assert read_command(consume("q").line) == commands.Consume("q")
    assert read_command(acknowledge("a").line) == commands.Ack("a")
    assert read_command(publish("x", "k", [one]).line) == commands.Publish("x", "k", one.written())
    batch = read_command(publish("x", "k", [one, two]).line)
    assert isinstance(batch, commands.PublishBatch)
    assert [each["message_id"] for each in json.loads(batch.text)] == ["a", "b"]


def test_each_line_is_one_and_says_what_it_is_without_what_it_carries() -> None:
    command = publish("x", "k", [message("a", b"one\ntwo")])
    assert command.line.count(b"\n") == 1
    assert command.told == "publish x k"


@pytest.mark.parametrize("name", ["", "two words", "a\nack b", "tab\t", "\u2028", "\x1b[2J"])
def test_a_name_that_would_make_another_command_is_refused(name: str) -> None:
    for make in (declare_queue, declare_exchange, consume):
        with pytest.raises(InvalidArgument, match="cannot be printed"):
            make(name)
    with pytest.raises(InvalidArgument, match="routing key"):
        publish("x", name, [message("a")])


def test_replies_are_told_apart() -> None:
    assert acknowledged_of("ACK a") == "a"
    assert acknowledged_of("ACK_CONFIRMED a") is None
    assert confirmed_of("ACK_CONFIRMED a") == "a"
    assert confirmed_of("ACK a") is None
    assert problem_of("Error: no such queue") == "no such queue"
    assert problem_of("ACK Error:") is None


def test_pushed_messages_are_told_from_replies() -> None:
    assert read_line(b'Message: a {"message_id": "a"}') == Pushed("a", b'{"message_id": "a"}')
    assert read_line(b"Queue declared") == "Queue declared"
    for line in (b"Message: a", b"Message:  {}", b"\xff"):
        with pytest.raises(UnexpectedAnswer):
            read_line(line)
