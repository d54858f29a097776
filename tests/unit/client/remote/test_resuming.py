"""What goes on across a lost connection, what is not repeated, and what callers are told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

import sealane
from sealane.client.producer import BATCH_MESSAGES
from sealane.client.remote.link import UNSENT_BYTES_MAX
from sealane.client.remote.publish_line import BATCHES_IN_FLIGHT_MAX
from sealane.message import Limits, Row, Stamp, decode, encode, from_payloads
from sealane.wire import messages as wire
from tests.unit.client.remote.scripted_node import ScriptedNode, Visitor, scripted_node

LIMITS = Limits()


@pytest.fixture
async def node() -> AsyncIterator[ScriptedNode]:
    async with scripted_node() as running:
        yield running


class Meeting:
    """A lane, and the node's side of its first connection, which carries everything."""

    def __init__(self, lane: sealane.Lane, visitor: Visitor) -> None:
        self.lane = lane
        self.visitor = visitor


@pytest.fixture
async def meeting(node: ScriptedNode) -> AsyncIterator[Meeting]:
    connecting = sealane.connect(node.url, connections=1, timeout=60)
    entering = asyncio.create_task(connecting.__aenter__())
    visitor = await node.welcomed()
    lane = await entering
    yield Meeting(lane, visitor)
    # Nobody answers any more: as after an error, nothing is waited for.
    await connecting.__aexit__(RuntimeError, RuntimeError(), None)


def published(call: int, first: int, count: int = 1) -> wire.Published:
    return wire.Published(call, [wire.PlacedShare(0, first, count)])


def delivery(consumer: int, lease: int, first: int, *payloads: bytes) -> tuple[wire.Deliver, bytes]:
    body = encode(from_payloads(list(payloads), Stamp(1_760_000_000_000_000, bytes(16)), limits=LIMITS))
    parts: list[tuple[int, int, int, bytes | None]] = [(first, len(payloads), len(body), None)]
    return wire.Deliver(consumer, "default/orders", 0, lease, 1 << 60, parts), body


# --- publishing -----------------------------------------------------------------------------------------------------


async def test_a_publish_without_an_answer_is_sent_again_as_the_same_batch(
    node: ScriptedNode, meeting: Meeting
) -> None:
    publishing = asyncio.create_task(meeting.lane.publish("orders", b"a"))
    _, first = await meeting.visitor.hear_with_body(wire.Publish)
    meeting.visitor.close()

    visitor = await node.welcomed()
    request, second = await visitor.hear_with_body(wire.Publish)
    visitor.say(published(request.call, 7))
    assert (await publishing).offset == 7
    assert bytes(first) == bytes(second), "it has the same ids, producer and sequence"


async def test_a_numbered_batch_names_the_one_of_its_producer_that_is_under_way(meeting: Meeting) -> None:
    lane, visitor = meeting.lane, meeting.visitor
    async with lane.producer("orders") as one, lane.producer("orders") as other:
        await one.send_rows([Row(b"a")])
        first = await visitor.hear(wire.Publish)
        await other.send_rows([Row(b"b")])
        stranger = await visitor.hear(wire.Publish)
        assert (first.after, stranger.after) == (0, 0)

        await one.send_rows([Row(b"c")] * BATCH_MESSAGES)
        second = await visitor.hear(wire.Publish)
        await one.send_rows([Row(b"d")] * BATCH_MESSAGES)
        third = await visitor.hear(wire.Publish)
        assert (second.after, third.after) == (first.call, second.call)

        visitor.say(published(third.call, 5_000, BATCH_MESSAGES))
        visitor.say(published(stranger.call, 20_000))
        await other.flush()  # By then the third one's answer is here, too.
        await one.send_rows([Row(b"e")] * BATCH_MESSAGES)
        fourth = await visitor.hear(wire.Publish)
        assert fourth.after == second.call, "an answer that came early leaves the one before it the last under way"

        for request, count in ((first, 1), (second, BATCH_MESSAGES), (fourth, BATCH_MESSAGES)):
            visitor.say(published(request.call, 30_000, count))
        await one.flush()
        await one.send_rows([Row(b"f")])
        fifth = await visitor.hear(wire.Publish)
        assert fifth.after == 0
        visitor.say(published(fifth.call, 50_000))


async def test_batches_are_sent_again_in_their_order(node: ScriptedNode, meeting: Meeting) -> None:
    lane = meeting.lane
    sending = [asyncio.create_task(lane.publish_many("orders", [b"%d" % number])) for number in range(5)]
    for _ in sending:
        request, _ = await meeting.visitor.hear_with_body(wire.Publish)
        if request.call == 2:
            meeting.visitor.say(published(request.call, 1))
    await sending[1]
    meeting.visitor.close()

    visitor = await node.welcomed()
    payloads = []
    for _ in range(4):
        request, body = await visitor.hear_with_body(wire.Publish)
        payloads += decode(body, limits=LIMITS).payloads()
        visitor.say(published(request.call, 0))
    await asyncio.gather(*sending)
    assert payloads == [b"0", b"2", b"3", b"4"]


async def test_a_publish_whose_caller_has_given_up_is_not_repeated(node: ScriptedNode, meeting: Meeting) -> None:
    giving_up = asyncio.create_task(meeting.lane.publish_many("orders", [b"a"]))
    await meeting.visitor.hear(wire.Publish)
    giving_up.cancel()
    await asyncio.wait([giving_up])
    waiting = asyncio.create_task(meeting.lane.publish_many("orders", [b"b", b"c"]))
    await meeting.visitor.hear(wire.Publish)
    meeting.visitor.close()

    visitor = await node.welcomed()
    request = await visitor.hear(wire.Publish)
    visitor.say(published(request.call, 0, 2))
    assert len(await waiting) == 2


async def test_only_so_many_batches_of_a_topic_are_under_way_and_others_are_not_held_up(meeting: Meeting) -> None:
    many = [asyncio.create_task(meeting.lane.publish_many("orders", [b"x"])) for _ in range(BATCHES_IN_FLIGHT_MAX + 1)]
    calls = [(await meeting.visitor.hear(wire.Publish)).call for _ in range(BATCHES_IN_FLIGHT_MAX)]
    other = asyncio.create_task(meeting.lane.publish_many("letters", [b"x"]))
    assert (await meeting.visitor.hear(wire.Publish)).topic == "letters"

    meeting.visitor.say(published(calls[0], 0))
    last = await meeting.visitor.hear(wire.Publish)
    assert last.topic == "orders"
    for call in (*calls[1:], last.call, last.call - 1):
        meeting.visitor.say(published(call, 0))
    await asyncio.gather(*many, other)


async def test_a_node_that_does_not_read_makes_publishers_wait_and_memory_stays_bounded(meeting: Meeting) -> None:
    meeting.visitor.pause_reading()
    large = bytes(LIMITS.payload_bytes_max)
    waiting = [asyncio.create_task(meeting.lane.publish_many("orders", [large] * 4)) for _ in range(20)]
    other = asyncio.create_task(meeting.lane.topics())
    link = meeting.lane._broker._pool.commands.current  # type: ignore[attr-defined]

    for _ in range(200):
        await asyncio.sleep(0)
    assert link.paused
    assert link._transport.get_write_buffer_size() <= UNSENT_BYTES_MAX + 5 * len(large)
    assert not any(task.done() for task in (*waiting, other))

    meeting.visitor.resume_reading()
    for _ in waiting:
        meeting.visitor.say(published((await meeting.visitor.hear(wire.Publish)).call, 0, 4))
    await asyncio.gather(*waiting)
    meeting.visitor.say(wire.Answer((await meeting.visitor.hear(wire.ListTopics)).call, msgspec.Raw(b"\x90")))
    assert await other == []


async def test_a_node_that_drains_gets_no_more_and_the_next_one_gets_what_it_refused(
    node: ScriptedNode, meeting: Meeting
) -> None:
    lane, old = meeting.lane, meeting.visitor
    first = asyncio.create_task(lane.publish_many("orders", [b"a"]))
    begun = await old.hear(wire.Publish)
    second = asyncio.create_task(lane.publish_many("orders", [b"b", b"c"]))
    refused = await old.hear(wire.Publish)
    old.say(wire.Goodbye("draining", "soon"))
    old.say(wire.Refused(refused.call, "unavailable", "too late"))
    new = await node.welcomed()
    third = asyncio.create_task(lane.publish_many("orders", [b"d", b"e", b"f"]))
    old.say(published(begun.call, 0))
    assert len(await first) == 1

    for task, count in ((second, 2), (third, 3)):
        new.say(published((await new.hear(wire.Publish)).call, 1, count))
        assert len(await task) == count


async def test_a_deadline_says_why_nothing_got_through(meeting: Meeting, node: ScriptedNode) -> None:
    await node.stop()
    with pytest.raises(sealane.DeadlineExceeded, match=rf"it may still happen \(.*127\.0\.0\.1:{node.port}.*\)"):
        await meeting.lane.publish_many("orders", [b"a"], timeout=0.5)


# --- commands -------------------------------------------------------------------------------------------------------


async def test_a_question_is_asked_again(node: ScriptedNode, meeting: Meeting) -> None:
    asking = asyncio.create_task(meeting.lane.topics())
    await meeting.visitor.hear(wire.ListTopics)
    meeting.visitor.close()

    visitor = await node.welcomed()
    visitor.say(wire.Answer((await visitor.hear(wire.ListTopics)).call, msgspec.Raw(b"\x91\xa1a")))
    assert await asking == ["a"]


async def test_what_cannot_be_repeated_says_that_it_may_have_happened(meeting: Meeting) -> None:
    deleting = asyncio.create_task(meeting.lane.delete_topic("orders"))
    await meeting.visitor.hear(wire.DeleteTopic)
    meeting.visitor.close()
    with pytest.raises(sealane.Unavailable, match="may have happened"):
        await deleting


async def test_an_answer_to_a_caller_who_left_disturbs_nobody(meeting: Meeting) -> None:
    leaving = asyncio.create_task(meeting.lane.topics())
    call = (await meeting.visitor.hear(wire.ListTopics)).call
    leaving.cancel()
    await asyncio.wait([leaving])
    meeting.visitor.say(wire.Answer(call, msgspec.Raw(b"\x90")))

    asking = asyncio.create_task(meeting.lane.topics())
    meeting.visitor.say(wire.Answer((await meeting.visitor.hear(wire.ListTopics)).call, msgspec.Raw(b"\x91\xa1b")))
    assert await asking == ["b"]


@pytest.mark.parametrize("answer", [wire.Done(1), wire.Answer(1, msgspec.Raw(b"\xc0")), wire.Browsed(1, [])])
async def test_an_answer_that_is_none_is_an_error_and_no_crash(meeting: Meeting, answer: wire.Reply) -> None:
    asking = asyncio.create_task(meeting.lane.topics())
    answer.call = (await meeting.visitor.hear(wire.ListTopics)).call
    meeting.visitor.say(answer)
    with pytest.raises(sealane.SealaneError, match="native protocol"):
        await asking


# --- consuming ------------------------------------------------------------------------------------------------------


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
