"""A receiver stores each message once and acknowledges it after that, whatever the broker does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import msgspec
import pytest

from sealane.cipher.errors import CannotDecrypt, ConnectionLost, OutputFull, Refused
from sealane.cipher.events import (
    Acknowledging,
    Arrived,
    Confirmed,
    Connected,
    Disconnected,
    Event,
    Repeated,
    Stored,
    Unconfirmed,
    Undecryptable,
)
from sealane.cipher.hybrid import encrypt
from sealane.cipher.intake import Intake
from sealane.cipher.lines import declare_queue
from sealane.cipher.received import ReceivedFile, open_received
from sealane.cipher.receiver import Order, Receiver
from sealane.cipher.trying import Patience
from sealane.wire.cipher.message import EncryptedMessage
from tests.unit.cipher.scripted_broker import BRISK, HASTY, Peer, ScriptedBroker, scripted_broker
from tests.unit.cipher.sealed import key, message


@pytest.fixture
def received(tmp_path: Path) -> Iterator[ReceivedFile]:
    with open_received(tmp_path / "received.jsonl") as opened:
        yield opened


def stored_in(received: ReceivedFile) -> list[str]:
    """The texts, as another program reads them."""
    return [json.loads(line)["message"] for line in received.path.read_text().splitlines()]


def receiver_of(
    broker: ScriptedBroker,
    received: ReceivedFile,
    order: Order,
    told: list[Event] | None = None,
    patience: Patience = BRISK,
) -> Receiver:
    tell = (told if told is not None else []).append
    return Receiver(broker.dial, order, intake_into(received), patience=patience, tell=tell)


def intake_into(received: ReceivedFile) -> Intake:
    return Intake(key(), received, lambda: datetime.now(UTC))


def foreign(message_id: str) -> EncryptedMessage:
    """For somebody else."""
    return encrypt(b"not for you", message_id, key(1).public_key())


async def test_a_message_is_stored_then_acknowledged_then_confirmed(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"good morning"))
        assert await peer.hear() == "ack a"
        assert stored_in(received) == ["good morning"], "it is durable before the broker may forget it"
        await peer.say("ACK_CONFIRMED a")
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(script) as broker:
        await receiver_of(broker, received, Order("q", count=1), told).run()
    assert [type(event) for event in told] == [Connected, Arrived, Stored, Acknowledging, Confirmed]


async def test_messages_that_come_together_are_stored_in_order_and_acknowledged_each(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(*(message(f"m-{number}", b"%d" % number) for number in range(250)))
        assert await peer.confirm(250) == [f"m-{number}" for number in range(250)]
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", count=250))
        await receiver.run()
    assert stored_in(received) == [str(number) for number in range(250)]
    assert (receiver.stored, receiver.unconfirmed) == (250, set())


async def test_a_message_that_comes_again_is_acknowledged_again_and_not_stored(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"), message("a", b"one"))
        await peer.confirm(1)
        await peer.push(message("a", b"one"), message("b", b"two"))
        await peer.confirm(2)
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", count=2), told)
        await receiver.run()
    assert stored_in(received) == ["one", "two"]
    assert (receiver.stored, receiver.repeated) == (2, 2)
    assert told.count(Repeated("a")) == 2


async def test_what_the_file_has_from_an_earlier_life_is_not_stored_again(tmp_path: Path) -> None:
    path = tmp_path / "received.jsonl"

    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"))
        assert await peer.hear() == "ack a"
        peer.cut()

    async def next_life(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"), message("b", b"two"))
        assert sorted(await peer.confirm(2)) == ["a", "b"]
        await peer.until_gone()

    with open_received(path) as received:
        async with scripted_broker(script) as broker:
            receiver = receiver_of(broker, received, Order("q", wait_seconds=0.3))
            await receiver.run()
        assert receiver.unconfirmed == {"a"}
    with open_received(path) as received:
        async with scripted_broker(next_life) as broker:
            await receiver_of(broker, received, Order("q", count=1)).run()
        assert stored_in(received) == ["one", "two"]


async def test_an_ack_that_is_not_confirmed_is_sent_again(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a"))
        assert [await peer.hear() for _ in range(3)] == ["ack a"] * 3
        await peer.say("ACK_CONFIRMED a")
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(script) as broker:
        await receiver_of(broker, received, Order("q", count=1), told).run()
    assert [event for event in told if isinstance(event, Acknowledging)] == [
        Acknowledging("a", attempt) for attempt in (1, 2, 3)
    ]


async def test_after_three_acks_without_an_answer_it_connects_again_and_acknowledges_again(
    received: ReceivedFile,
) -> None:
    async def deaf(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"))
        await peer.until_gone()

    async def healthy(peer: Peer) -> None:
        await peer.begin()
        await peer.confirm(1)
        await peer.until_gone()

    async with scripted_broker(deaf, healthy) as broker:
        receiver = receiver_of(broker, received, Order("q", count=1))
        await receiver.run()
    assert stored_in(received) == ["one"]
    assert (receiver.stored, receiver.repeated, receiver.unconfirmed) == (1, 0, set())


async def test_an_ack_that_is_refused_is_made_up_for_when_the_message_comes_again(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"), message("b", b"two"))
        assert [await peer.hear(), await peer.hear()] == ["ack a", "ack b"]
        await peer.say("Error: it took you too long", "ACK_CONFIRMED b")
        await peer.push(message("a", b"one"))
        await peer.confirm(1)
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", count=2), told)
        await receiver.run()
    assert Unconfirmed("a", "it took you too long") in told
    assert receiver.unconfirmed == set()
    assert stored_in(received) == ["one", "two"]


async def test_an_ack_that_is_never_confirmed_is_told_at_the_end(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a"))
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", count=1), patience=HASTY)
        await receiver.run()
    assert (receiver.stored, receiver.unconfirmed) == (1, {"a"})


async def test_a_lost_connection_is_made_again_until_the_broker_is_back(received: ReceivedFile) -> None:
    async def cut(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"))
        await peer.confirm(1)
        peer.cut()

    async def refuse(peer: Peer) -> None:
        await peer.hear()
        await peer.say("Error: the node is about to stop")

    async def back(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("b", b"two"))
        await peer.confirm(1)
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(cut, refuse, back) as broker:
        await receiver_of(broker, received, Order("q", count=2), told).run()
    assert stored_in(received) == ["one", "two"]
    assert ["about to stop" in event.why for event in told if isinstance(event, Disconnected)] == [False, True]


async def test_a_broker_that_is_not_there_at_the_beginning_or_refuses_the_queue_is_an_error(
    received: ReceivedFile,
) -> None:
    async def refuse(peer: Peer) -> None:
        await peer.hear()
        await peer.say("Error: you may not")
        await peer.until_gone()

    async with scripted_broker(refuse) as broker:
        with pytest.raises(Refused, match="refuses `consume q`: you may not"):
            await receiver_of(broker, received, Order("q")).run()
        with pytest.raises(ConnectionLost):
            await receiver_of(broker, received, Order("q")).run()


async def test_the_queue_is_declared_where_that_is_asked_for(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        assert await peer.hear() == "declare_queue q"
        await peer.say("Queue declared")
        await peer.begin()
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        await receiver_of(broker, received, Order("q", [declare_queue("q")], wait_seconds=0)).run()


async def test_what_cannot_be_decrypted_is_told_once_and_not_acknowledged_and_others_go_on(
    received: ReceivedFile,
) -> None:
    changed = msgspec.structs.replace(message("changed"), tag=message("other").tag)

    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(foreign("foreign"), message("a", b"one"), changed)
        await peer.say('Message: junk {"payload_base64": "aGVsbG8="}')
        await peer.say(f"Message: renamed {message('real').written().decode()}")
        assert await peer.confirm(1) == ["a"]
        await peer.push(foreign("foreign"), message("b", b"two"))
        assert await peer.confirm(1) == ["b"]
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", count=2), told)
        await receiver.run()
    reasons = {event.message_id: event.reason for event in told if isinstance(event, Undecryptable)}
    assert list(reasons) == ["foreign", "changed", "junk", "renamed"]
    assert "not encrypted for this private key" in reasons["foreign"]
    assert "was changed on the way" in reasons["changed"]
    assert "missing required field" in reasons["junk"]
    assert reasons["renamed"] == "it calls itself real"
    assert sum(isinstance(event, Undecryptable) for event in told) == 4
    assert (receiver.stored, receiver.undecryptable) == (2, 4)
    assert stored_in(received) == ["one", "two"]


async def test_it_ends_at_what_cannot_be_decrypted_if_that_is_wanted(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"), foreign("foreign"))
        assert await peer.confirm(1) == ["a"]
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        with pytest.raises(CannotDecrypt, match="message foreign cannot be decrypted"):
            await receiver_of(broker, received, Order("q", when_undecryptable="stop")).run()
    assert stored_in(received) == ["one"]


async def test_what_cannot_be_decrypted_does_not_put_the_end_off(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        while True:
            await peer.push(foreign("foreign"))
            await asyncio.sleep(0.01)

    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q", wait_seconds=0.3))
        await receiver.run()
    assert receiver.undecryptable == 1


async def test_it_takes_no_more_than_it_was_asked_for(received: ReceivedFile) -> None:
    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(*map(message, "abcde"))
        assert await peer.confirm(2) == ["a", "b"]
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        await receiver_of(broker, received, Order("q", count=2)).run()
    assert len(received.ids) == 2


async def test_what_cannot_be_stored_is_not_acknowledged(
    received: ReceivedFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OutputFull(str(received.path), 1)

    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a"))
        assert await peer.hear() == "nothing is heard"

    monkeypatch.setattr(received, "_write", full)
    async with scripted_broker(script) as broker:
        with pytest.raises(OutputFull):
            await receiver_of(broker, received, Order("q")).run()
    assert "a" not in received.ids


async def test_stopping_finishes_what_is_in_hand(received: ReceivedFile) -> None:
    asked, go_on = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.begin()
        await peer.push(message("a", b"one"))
        assert await peer.hear() == "ack a"
        asked.set()
        await go_on.wait()
        await peer.push(message("b", b"two"))
        await peer.say("ACK_CONFIRMED a")
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        receiver = receiver_of(broker, received, Order("q"), patience=Patience())
        running = asyncio.create_task(receiver.run())
        await asked.wait()
        receiver.stop()
        go_on.set()
        await running
    assert (stored_in(received), receiver.unconfirmed) == (["one"], set())


async def test_stopping_ends_it_at_once_where_it_waits(received: ReceivedFile) -> None:
    async def wait(peer: Peer) -> None:
        await peer.begin()
        await peer.until_gone()

    async def cut(peer: Peer) -> None:
        await peer.begin()
        peer.cut()

    async with scripted_broker(wait) as broker:
        await stop_at(Connected, broker, received)
    async with scripted_broker(cut) as broker:
        await stop_at(Disconnected, broker, received)


async def stop_at(kind: type[Event], broker: ScriptedBroker, received: ReceivedFile) -> None:
    """Run a receiver, and stop it when something happens."""
    reached = asyncio.Event()

    def tell(event: Event) -> None:
        if isinstance(event, kind):
            reached.set()
            receiver.stop()

    receiver = Receiver(broker.dial, Order("q"), intake_into(received), patience=BRISK, tell=tell)
    await receiver.run()
    assert reached.is_set()
