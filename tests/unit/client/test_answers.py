"""Acks gather, one by one or many at once, and are handed over as the same set."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from sealane.client.answers import ACK_BUFFER_MESSAGES, Answers
from sealane.client.broker import Hold
from sealane.errors import Closed
from sealane.node import Delivery

Handed = list[tuple[int, int, list[int]]]


class Holding:
    """Keeps what is settled."""

    def __init__(self) -> None:
        self.handed: Handed = []

    def settle(self, partition: int, lease: int, offsets: BitMap64) -> None:
        self.handed.append((partition, lease, list(offsets)))


class DistantHolding(Holding):
    """The same, and is told what goes together."""

    def __init__(self) -> None:
        super().__init__()
        self.times = 0

    def settle_together(self, acks: dict[tuple[int, int], BitMap64]) -> None:
        self.times += 1
        for (partition, lease), offsets in acks.items():
            self.settle(partition, lease, offsets)

    def __getattr__(self, name: str) -> object:
        return lambda: pytest.fail(f"{name} is not asked for here")  # The rest of what a hold can do.


def leased(partition: int, lease: int) -> Delivery:
    return Delivery("default/orders", partition, "billing", lease, 0, (), ())


def answers_to(holding: Holding, *, auto_ack: bool = False) -> Answers:
    return Answers(cast(Hold, holding), auto_ack=auto_ack)


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 1 << 40)), max_size=30))
def test_one_by_one_and_together_are_the_same(acks: list[tuple[int, int, int]]) -> None:
    async def handed(holding: Holding, *, singly: bool) -> Handed:
        answers = answers_to(holding)
        for partition, lease, offset in acks:
            if singly:
                answers.ack_one(leased(partition, lease), offset)
            else:
                answers.gather(leased(partition, lease), BitMap64([offset]))
        answers.flush()
        return holding.handed

    expected = asyncio.run(handed(Holding(), singly=False))
    assert asyncio.run(handed(Holding(), singly=True)) == expected
    distant = DistantHolding()
    assert asyncio.run(handed(distant, singly=True)) == expected
    assert distant.times == (1 if acks else 0), "a hold elsewhere is told once, and not at all of nothing"


async def test_many_acks_do_not_wait() -> None:
    holding = Holding()
    answers = answers_to(holding)
    for offset in range(ACK_BUFFER_MESSAGES - 1):
        answers.ack_one(leased(0, 1), offset)
    assert not holding.handed
    answers.ack_one(leased(0, 1), ACK_BUFFER_MESSAGES - 1)
    assert holding.handed == [(0, 1, list(range(ACK_BUFFER_MESSAGES)))]


async def test_a_closed_lane_takes_no_ack_and_automatic_acks_need_none() -> None:
    holding = Holding()
    answers = answers_to(holding)
    answers.close()
    with pytest.raises(Closed):
        answers.ack_one(leased(0, 1), 0)
    answers_to(holding, auto_ack=True).ack_one(leased(0, 1), 0)
    assert not holding.handed
