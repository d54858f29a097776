"""Consuming across a lost connection: what goes on, what is dropped, and what the node is told of it."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from sealane.message import Limits, Stamp, encode, from_payloads
from sealane.wire import messages as wire
from tests.unit.client.remote.resuming.meeting import Meeting
from tests.unit.client.remote.scripted_node import ScriptedNode, Visitor

LIMITS = Limits()


def delivery(consumer: int, lease: int, first: int, *payloads: bytes) -> tuple[wire.Deliver, bytes]:
    body = encode(from_payloads(list(payloads), Stamp(1_760_000_000_000_000, bytes(16)), limits=LIMITS))
    parts: list[tuple[int, int, int, bytes | None]] = [(first, len(payloads), len(body), None)]
    return wire.Deliver(consumer, "default/orders", 0, lease, 1 << 60, parts), body


async def attached(visitor: Visitor, **positions: int) -> wire.Attach:
    attach = await visitor.hear(wire.Attach)
    visitor.say(wire.Attached(attach.call, {0: positions.get("at", 0)}))
    return attach


async def test_acks_of_several_leases_go_in_one_message(meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "billing"))
    stepping = asyncio.create_task(anext(loop))
    consumer = (await attached(meeting.visitor)).consumer
    for lease in range(3):
        meeting.visitor.say(*delivery(consumer, lease, 10 * lease, b"a", b"b", b"c"))
    messages = [await stepping] + [await anext(loop) for _ in range(8)]
    for message in messages:
        if message.offset not in (1, 22):
            await message.ack()

    settle = await meeting.visitor.hear(wire.Settle)
    assert [(each.lease, each.runs) for each in settle.leases] == [
        (0, [0, 1, 2, 3]),
        (1, [10, 13]),
        (2, [20, 22]),
    ]
    leaving = asyncio.create_task(loop.aclose())
    meeting.visitor.say(wire.Done((await meeting.visitor.hear(wire.Detach)).call))
    await leaving


async def test_a_consumer_attaches_again_with_the_credit_it_had_left(node: ScriptedNode, meeting: Meeting) -> None:
    messages = meeting.lane.consume("orders", "billing", prefetch=10)
    loop = aiter(messages)
    stepping = asyncio.create_task(anext(loop))
    first = await attached(meeting.visitor)
    assert (first.credit, (await meeting.visitor.hear(wire.Credit)).messages) == (0, 10)
    deliver, body = delivery(first.consumer, 5, 0, b"a", b"b", b"c")
    meeting.visitor.say(deliver, body)
    old = await stepping
    meeting.visitor.close()

    visitor = await node.welcomed()
    again = await attached(visitor)
    # One of three is being handed out in a stride that is not done with: its room is made when it is.
    assert again.credit == 7
    assert (again.identity, again.topic, again.config) == (first.identity, first.topic, first.config)
    deliver, body = delivery(again.consumer, 5, 1, b"b", b"c")
    visitor.say(deliver, body)
    assert [(await anext(loop)).payload for _ in range(2)] == [b"b", b"c"], "what was fetched ahead was dropped"

    with pytest.raises(sealane.LeaseLost, match="connection"):
        await old.ack(confirm=True)
    await loop.aclose()


async def test_the_ack_of_a_message_from_before_is_not_told_to_the_node(node: ScriptedNode, meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "billing"))
    stepping = asyncio.create_task(anext(loop))
    deliver, body = delivery((await attached(meeting.visitor)).consumer, 5, 0, b"a")
    meeting.visitor.say(deliver, body)
    old = await stepping
    meeting.visitor.close()
    visitor = await node.welcomed()
    consumer = (await attached(visitor)).consumer
    deliver, body = delivery(consumer, 5, 0, b"a")
    visitor.say(deliver, body)
    new = await anext(loop)
    await old.ack()
    await old.nack()
    await new.ack()

    settle = await visitor.hear(wire.Settle)
    assert [(lease.lease, lease.runs) for lease in settle.leases] == [(5, [0, 1])]
    leaving = asyncio.create_task(loop.aclose())
    visitor.say(wire.Done((await visitor.hear(wire.Detach)).call))
    await leaving
    assert not [message for message, _ in visitor.passed if isinstance(message, wire.Nack)]


async def test_a_confirmed_ack_whose_answer_is_lost_says_that_it_may_have_happened(meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "billing"))
    stepping = asyncio.create_task(anext(loop))
    deliver, body = delivery((await attached(meeting.visitor)).consumer, 5, 0, b"a")
    meeting.visitor.say(deliver, body)
    acking = asyncio.create_task((await stepping).ack(confirm=True))
    await meeting.visitor.hear(wire.Ack)
    meeting.visitor.close()
    with pytest.raises(sealane.LeaseLost, match="may have happened"):
        await acking


async def test_a_broadcast_goes_on_where_it_was_without_what_was_settled(node: ScriptedNode, meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "screens", mode="broadcast", start="latest"))
    stepping = asyncio.create_task(anext(loop))
    attach = await attached(meeting.visitor, at=10)
    assert attach.start == "latest"
    deliver, body = delivery(attach.consumer, 1, 10, b"a", b"b", b"c", b"d")
    meeting.visitor.say(deliver, body)
    for ack in (True, False, True):
        message = await stepping
        if ack:
            await message.ack()
        stepping = asyncio.create_task(anext(loop))
    await stepping
    meeting.visitor.close()

    visitor = await node.welcomed()
    again = await visitor.hear(wire.Attach)
    assert again.start == {0: 11}, "up to there everything is settled"
    visitor.say(wire.Attached(again.call, {0: 11}))
    deliver, body = delivery(again.consumer, 1, 11, b"b", b"c", b"d")
    visitor.say(deliver, body)
    assert [(await anext(loop)).offset for _ in range(2)] == [11, 13]
    settled = await visitor.hear(wire.Settle)
    assert settled.leases[0].runs == [12, 13]


async def test_a_subscription_that_is_gone_meanwhile_ends_the_iteration(node: ScriptedNode, meeting: Meeting) -> None:
    stepping = asyncio.create_task(anext(aiter(meeting.lane.consume("orders", "billing"))))
    await attached(meeting.visitor)
    meeting.visitor.close()
    visitor = await node.welcomed()
    attach = await visitor.hear(wire.Attach)
    visitor.say(wire.Refused(attach.call, "mode-conflict", "it is a broadcast now", {"subscription": "billing"}))
    with pytest.raises(sealane.ModeConflict, match="it is a broadcast now"):
        await stepping


async def test_a_consumer_whose_caller_gave_up_leaves_as_soon_as_it_is_attached(meeting: Meeting) -> None:
    stepping = asyncio.create_task(anext(aiter(meeting.lane.consume("orders", "billing"))))
    attach = await meeting.visitor.hear(wire.Attach)
    stepping.cancel()
    await asyncio.wait([stepping])
    meeting.visitor.say(wire.Attached(attach.call, {}))
    detach = await meeting.visitor.hear(wire.Detach)
    assert (detach.consumer, detach.end) == (attach.consumer, True)


async def test_what_comes_after_the_consumer_has_left_goes_back(meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "billing"))
    stepping = asyncio.create_task(anext(loop))
    consumer = (await attached(meeting.visitor)).consumer
    deliver, body = delivery(consumer, 5, 0, b"a", b"b")
    meeting.visitor.say(deliver, body)
    await stepping
    leaving = asyncio.create_task(loop.aclose())
    assert (await meeting.visitor.hear(wire.Leave)).unhandled[0].runs == [1, 2]
    deliver, body = delivery(consumer, 5, 2, b"c")
    meeting.visitor.say(deliver, body)
    assert (await meeting.visitor.hear(wire.Release)).leases[0].runs == [2, 3]
    detach = next(message for message, _ in meeting.visitor.passed if isinstance(message, wire.Detach))
    meeting.visitor.say(wire.Done(detach.call))
    await leaving


async def test_a_draining_node_gets_back_what_was_fetched_ahead(node: ScriptedNode, meeting: Meeting) -> None:
    loop = aiter(meeting.lane.consume("orders", "billing"))
    stepping = asyncio.create_task(anext(loop))
    old = meeting.visitor
    consumer = (await attached(old)).consumer
    deliver, body = delivery(consumer, 5, 0, b"a", b"b")
    old.say(deliver, body)
    message = await stepping
    old.say(wire.Goodbye("draining", "soon"))
    assert (await old.hear(wire.Leave)).unhandled[0].runs == [1, 2]

    visitor = await node.welcomed()
    await attached(visitor)
    acking = asyncio.create_task(message.ack(confirm=True))
    old.say(wire.Done((await old.hear(wire.Ack)).call))
    await acking


async def test_a_delivery_that_is_no_batch_breaks_the_connection_and_not_the_lane(
    node: ScriptedNode, meeting: Meeting
) -> None:
    stepping = asyncio.create_task(anext(aiter(meeting.lane.consume("orders", "billing"))))
    consumer = (await attached(meeting.visitor)).consumer
    deliver, body = delivery(consumer, 5, 0, b"a")
    meeting.visitor.say(deliver, bytes(len(body)))
    assert (await meeting.visitor.hear(wire.Goodbye)).code == "bad-message"

    visitor = await node.welcomed()
    deliver, body = delivery((await attached(visitor)).consumer, 5, 0, b"a")
    visitor.say(deliver, body)
    assert (await stepping).payload == b"a"
