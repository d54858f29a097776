"""Commands across a lost connection: what is asked again, what is not, and what callers are told."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

import sealane
from sealane.wire import messages as wire
from tests.unit.client.remote.resuming.meeting import Meeting
from tests.unit.client.remote.scripted_node import ScriptedNode


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
