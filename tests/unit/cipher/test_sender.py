"""A sender keeps each message until it is acknowledged, whatever the broker does."""

from __future__ import annotations

import asyncio

import pytest

from sealane.cipher.errors import NotAcknowledged
from sealane.cipher.events import Acknowledged, Event, Retrying, Sending
from sealane.cipher.lines import bind, declare_exchange, declare_queue
from sealane.cipher.sender import BATCH_MESSAGES, Sender
from sealane.cipher.trying import Patience
from tests.unit.cipher.scripted_broker import BRISK, HASTY, Peer, Script, ScriptedBroker, scripted_broker
from tests.unit.cipher.sealed import message


def sender_to(broker: ScriptedBroker, told: list[Event] | None = None, patience: Patience = BRISK) -> Sender:
    return Sender(broker.dial, "x", "k", patience=patience, tell=(told if told is not None else []).append)


async def acknowledge_everything(peer: Peer) -> None:
    while True:
        await peer.say(*(f"ACK {message_id}" for message_id in await peer.hear_published()))


async def silence(peer: Peer) -> None:
    await peer.until_gone()


async def crash(peer: Peer) -> None:
    await peer.hear_published()
    peer.cut()


async def refusal(peer: Peer) -> None:
    await peer.hear_published()
    await peer.say("Error: not now")
    await peer.until_gone()


async def test_a_message_is_sent_once_if_it_is_acknowledged() -> None:
    told: list[Event] = []
    async with scripted_broker(acknowledge_everything) as broker:
        sender = sender_to(broker, told)
        await sender.send([message("a")])
        await sender.send([message("b")])
        await sender.close()
    assert told == [Sending("a", 1), Acknowledged("a"), Sending("b", 1), Acknowledged("b")]
    assert (sender.pending, sender.acknowledged) == ({}, 2)


@pytest.mark.parametrize("trouble", [silence, crash, refusal])
async def test_it_is_sent_again_on_a_new_connection_until_it_is_acknowledged(trouble: Script) -> None:
    told: list[Event] = []
    async with scripted_broker(trouble, trouble, acknowledge_everything) as broker:
        sender = sender_to(broker, told)
        await sender.send([message("a")])
        await sender.close()
    assert [event for event in told if not isinstance(event, Retrying)] == [
        Sending("a", 1),
        Sending("a", 2),
        Sending("a", 3),
        Acknowledged("a"),
    ]
    assert sender.pending == {}


@pytest.mark.parametrize(
    ("trouble", "problem"),
    [(silence, r"has not acknowledged within 0\.1 s"), (crash, "connection"), (refusal, "not now")],
)
async def test_after_three_tries_it_says_what_is_pending(trouble: Script, problem: str) -> None:
    async with scripted_broker(trouble, trouble, trouble) as broker:
        sender = sender_to(broker, patience=HASTY)
        with pytest.raises(NotAcknowledged, match=problem) as failed:
            await sender.send([message("a"), message("b")])
        await sender.close()
    assert failed.value.pending == ("a", "b")
    assert "2 messages (a, b) not acknowledged after 3 tries" in str(failed.value)
    assert list(sender.pending) == ["a", "b"]


async def test_what_is_pending_can_be_sent_again_under_the_same_ids() -> None:
    async with scripted_broker(silence, silence, silence, acknowledge_everything) as broker:
        sender = sender_to(broker)
        with pytest.raises(NotAcknowledged):
            await sender.send([message("a")])
        await sender.send([])
        await sender.close()
    assert (sender.pending, sender.acknowledged) == ({}, 1)


async def test_many_go_in_batches_and_in_order() -> None:
    heard: list[list[str]] = []

    async def script(peer: Peer) -> None:
        while True:
            heard.append(await peer.hear_published())
            await peer.say(*(f"ACK {message_id}" for message_id in heard[-1]))

    ids = [f"m-{number}" for number in range(BATCH_MESSAGES + 1)]
    async with scripted_broker(script) as broker:
        sender = sender_to(broker)
        await sender.send([message(each, b"") for each in ids])
        await sender.close()
    assert [len(batch) for batch in heard] == [BATCH_MESSAGES, 1]
    assert [each for batch in heard for each in batch] == ids


async def test_large_messages_go_in_lines_that_a_broker_takes() -> None:
    heard: list[list[str]] = []

    async def script(peer: Peer) -> None:
        while True:
            heard.append(await peer.hear_published())
            await peer.say(*(f"ACK {message_id}" for message_id in heard[-1]))

    async with scripted_broker(script) as broker:
        sender = sender_to(broker)
        await sender.send([message("a", bytes(2 << 20)), *(message(each, bytes(300_000)) for each in "bcdef")])
        await sender.close()
    assert heard == [["a"], ["b", "c"], ["d", "e"], ["f"]]


async def test_only_what_was_not_acknowledged_is_sent_again() -> None:
    async def half(peer: Peer) -> None:
        ids = await peer.hear_published()
        await peer.say(*(f"ACK {message_id}" for message_id in ids[::2]))
        peer.hang_up()

    again: list[str] = []

    async def rest(peer: Peer) -> None:
        again.extend(await peer.hear_published())
        await peer.say(*(f"ACK {message_id}" for message_id in reversed(again)))
        await peer.until_gone()

    async with scripted_broker(half, rest) as broker:
        sender = sender_to(broker)
        await sender.send([message(each) for each in "abcde"])
        await sender.close()
    assert again == ["b", "d"]
    assert sender.acknowledged == 5


async def test_a_broker_that_is_slow_and_at_it_is_given_time() -> None:
    async def slow(peer: Peer) -> None:
        for message_id in await peer.hear_published():
            await asyncio.sleep(BRISK.try_seconds / 4)
            await peer.say(f"ACK {message_id}")
        await peer.until_gone()

    async with scripted_broker(slow) as broker:
        sender = sender_to(broker)
        await sender.send([message(each) for each in "abcdef"])
        await sender.close()
    assert sender.acknowledged == 6


async def test_a_late_ack_and_one_for_somebody_else_are_not_taken_for_the_next() -> None:
    async def late(peer: Peer) -> None:
        await peer.hear_published()
        await peer.say("ACK somebody-elses", "ACK a", "ACK a")
        assert await peer.hear_published() == ["b"]
        await peer.say("ACK a", "ACK b")
        await peer.until_gone()

    told: list[Event] = []
    async with scripted_broker(late) as broker:
        sender = sender_to(broker, told)
        await sender.send([message("a")])
        await sender.send([message("b")])
        await sender.close()
    assert [event for event in told if isinstance(event, Acknowledged)] == [Acknowledged("a"), Acknowledged("b")]


async def test_of_a_refused_batch_the_message_to_blame_is_found_and_those_before_it_are_sent() -> None:
    async def refuse_c(peer: Peer) -> None:
        while True:
            ids = await peer.hear_published()
            await peer.say(*(["Error: c is too large"] if "c" in ids else [f"ACK {each}" for each in ids]))

    async with scripted_broker(*[refuse_c] * 5) as broker:
        sender = sender_to(broker)
        with pytest.raises(NotAcknowledged, match="c is too large") as failed:
            await sender.send([message(each) for each in "abcd"])
        await sender.close()
    assert failed.value.pending == ("c", "d")


async def test_queues_are_declared_at_the_beginning_of_each_connection() -> None:
    heard: list[str] = []

    async def declared(peer: Peer) -> None:
        for reply in ("Exchange declared", "Queue declared", "Queue bound"):
            heard.append(await peer.hear())
            await peer.say(reply)
        await peer.hear_published()

    async def acknowledging(peer: Peer) -> None:
        for reply in ("Exchange declared", "Queue declared", "Queue bound"):
            heard.append(await peer.hear())
            await peer.say(reply)
        await acknowledge_everything(peer)

    async with scripted_broker(declared, acknowledging) as broker:
        declaring = [declare_exchange("x"), declare_queue("q"), bind("q", "x", "k")]
        sender = Sender(broker.dial, "x", "k", declaring=declaring)
        await sender.send([message("a")])
        await sender.close()
    assert heard == ["declare_exchange x", "declare_queue q", "bind q x k"] * 2


async def test_a_broker_that_comes_back_within_a_try_is_found() -> None:
    async with scripted_broker(acknowledge_everything) as broker:
        there, broker.left = broker.left, 0
        patience = Patience(tries=1, try_seconds=5)
        sender = sender_to(broker, patience=patience)
        sending = asyncio.create_task(sender.send([message("a")]))
        await asyncio.sleep(0)
        broker.left = there
        await sending
        await sender.close()
    assert sender.acknowledged == 1


async def test_stopping_ends_it_with_the_line_under_way() -> None:
    heard = asyncio.Event()
    go_on = asyncio.Event()

    async def script(peer: Peer) -> None:
        ids = await peer.hear_published()
        heard.set()
        await go_on.wait()
        await peer.say(*(f"ACK {message_id}" for message_id in ids))
        await peer.until_gone()

    async with scripted_broker(script) as broker:
        sender = sender_to(broker, patience=Patience())
        ids = [f"m-{number}" for number in range(BATCH_MESSAGES + 5)]
        sending = asyncio.create_task(sender.send([message(each, b"") for each in ids]))
        await heard.wait()
        sender.stop()
        go_on.set()
        await sending
        await sender.close()
    assert sender.acknowledged == BATCH_MESSAGES
    assert list(sender.pending) == ids[BATCH_MESSAGES:]
