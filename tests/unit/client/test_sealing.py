"""Looking up the keys of recipients: once for all who ask, and with care for what a node may answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import sealane
from sealane.client.sealing import Sealing
from sealane.message import Limits
from sealane.node.outgoing import Outgoing
from sealane.node.surroundings import of_this_machine

KEY = sealane.PrivateKey.generate().public
ANSWER = {"billing": [{"pem": KEY.pem()}]}


def sealing_by(answer: Callable[[], Awaitable[Any]]) -> Sealing:
    """With a node that answers so."""

    async def administer(command: str, *, names: list[str]) -> Any:
        assert (command, names) == ("directory.get", ["billing"])
        return await answer()

    def hand_over(topic: str, batch: object, landed: object) -> None:
        raise AssertionError("nothing is published here")

    return Sealing(Outgoing(Limits(), of_this_machine()), administer, hand_over, 30.0)


async def test_all_who_ask_at_a_time_wait_for_one_answer_and_share_it() -> None:
    asked = 0
    ready = asyncio.Event()

    async def answer() -> Any:
        nonlocal asked
        asked += 1
        await ready.wait()
        return ANSWER

    sealing = sealing_by(answer)
    waiting = [asyncio.create_task(sealing.outgoing("billing")) for _ in range(5)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    ready.set()
    first, *others = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError), "who gives up does so alone"
    assert {id(each) for each in others} == {id(await sealing.outgoing(["billing"]))}
    assert asked == 1


async def test_a_failure_is_not_remembered() -> None:
    answers: list[Any] = [sealane.RecipientNotFound("billing"), ANSWER]

    async def answer() -> Any:
        found = answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return found

    sealing = sealing_by(answer)
    with pytest.raises(sealane.RecipientNotFound):
        await sealing.outgoing("billing")
    assert list((await sealing.outgoing("billing")).recipients) == [KEY]


@pytest.mark.parametrize(
    "answer", [None, 7, {}, {"billing": None}, {"billing": [7]}, {"billing": [{}]}, {"billing": [{"pem": 7}]}]
)
async def test_an_answer_that_makes_no_sense_is_refused(answer: Any) -> None:
    async def give() -> Any:
        return answer

    with pytest.raises(sealane.Unavailable, match="something else"):
        await sealing_by(give).outgoing("billing")


@pytest.mark.parametrize("answer", [{"billing": []}, {"billing": [{"pem": "hello"}]}])
async def test_an_answer_without_a_key_seals_nothing(answer: Any) -> None:
    async def give() -> Any:
        return answer

    with pytest.raises(sealane.InvalidArgument):
        await sealing_by(give).outgoing("billing")
