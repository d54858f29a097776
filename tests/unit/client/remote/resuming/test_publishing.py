"""Publishing across a lost connection: the same batches, in their order, within bounds."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import sealane
from sealane.client.coalescing import CALL_MESSAGES_MAX
from sealane.client.producer import BATCH_MESSAGES
from sealane.client.remote.link import UNSENT_BYTES_MAX
from sealane.client.remote.publish_line import BATCHES_IN_FLIGHT_MAX
from sealane.message import Limits, Row, decode
from sealane.wire import messages as wire
from tests.unit.client.remote.resuming.meeting import Meeting
from tests.unit.client.remote.scripted_node import ScriptedNode

LIMITS = Limits()
ALONE = CALL_MESSAGES_MAX + 1
"""A call with so many messages shares its batch with no other."""


def published(call: int, first: int, count: int = 1) -> wire.Published:
    return wire.Published(call, [wire.PlacedShare(0, first, count)])


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
    sending = [asyncio.create_task(lane.publish_many("orders", [b"%d" % number] * ALONE)) for number in range(5)]
    for _ in sending:
        request, _ = await meeting.visitor.hear_with_body(wire.Publish)
        if request.call == 2:
            meeting.visitor.say(published(request.call, 1, ALONE))
    await sending[1]
    meeting.visitor.close()

    visitor = await node.welcomed()
    payloads = []
    for _ in range(4):
        request, body = await visitor.hear_with_body(wire.Publish)
        payloads += sorted(set(decode(body, limits=LIMITS).payloads()))
        visitor.say(published(request.call, 0, ALONE))
    await asyncio.gather(*sending)
    assert payloads == [b"0", b"2", b"3", b"4"]


async def test_a_publish_whose_caller_has_given_up_is_not_repeated(node: ScriptedNode, meeting: Meeting) -> None:
    giving_up = asyncio.create_task(meeting.lane.publish_many("orders", [b"a"] * ALONE))
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
    payloads = [b"x"] * ALONE
    many = [
        asyncio.create_task(meeting.lane.publish_many("orders", payloads)) for _ in range(BATCHES_IN_FLIGHT_MAX + 1)
    ]
    calls = [(await meeting.visitor.hear(wire.Publish)).call for _ in range(BATCHES_IN_FLIGHT_MAX)]
    other = asyncio.create_task(meeting.lane.publish_many("letters", payloads))
    assert (await meeting.visitor.hear(wire.Publish)).topic == "letters"

    meeting.visitor.say(published(calls[0], 0, ALONE))
    last = await meeting.visitor.hear(wire.Publish)
    assert last.topic == "orders"
    for call in (*calls[1:], last.call, last.call - 1):
        meeting.visitor.say(published(call, 0, ALONE))
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
