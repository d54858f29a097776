"""What a consumer has fetched ahead: handed out in order, dropped when revoked, returned before its lease ends."""

from __future__ import annotations

import asyncio

import pytest
from pyroaring import BitMap64

from sealane.client.fetched import Fetched
from sealane.errors import Closed
from sealane.message import Limits, Stamp, from_payloads
from sealane.node import Delivery, Part, Revocation


def delivery(lease: int, *runs: range) -> Delivery:
    parts = tuple(
        Part(run, from_payloads([str(offset).encode() for offset in run], Stamp(1, bytes(16)), limits=Limits()))
        for run in runs
    )
    return Delivery("default/orders", 0, "billing", lease, 0, parts, ())


class Watched:
    """A `Fetched` with what it gave back and dropped."""

    def __init__(self, patience_seconds: float | None) -> None:
        self.returned: asyncio.Queue[tuple[int, list[int]]] = asyncio.Queue()
        self.dropped = 0
        self.fetched = Fetched(
            patience_seconds,
            lambda given_back, offsets: self.returned.put_nowait((given_back.lease, list(offsets))),
            self._drop,
        )

    def _drop(self, count: int) -> None:
        self.dropped += count

    def offsets_left(self) -> list[int]:
        return [offset for _, offsets in self.fetched.drain() for offset in offsets]


async def test_messages_are_taken_in_order_and_at_most_as_many_as_asked_for() -> None:
    watched = Watched(None)
    watched.fetched.deliver(delivery(1, range(5), range(5, 7)))
    assert [list(watched.fetched.take(3)[1].offsets) for _ in range(3)] == [[0, 1, 2], [3, 4], [5, 6]]


async def test_what_was_revoked_is_dropped_and_makes_room_for_as_much() -> None:
    watched = Watched(None)
    watched.fetched.deliver(delivery(1, range(5)))
    watched.fetched.deliver(delivery(2, range(5, 8)))
    watched.fetched.revoke(Revocation(0, 1, BitMap64([1, 3])))
    assert watched.dropped == 2
    assert watched.offsets_left() == [0, 2, 4, 5, 6, 7]


async def test_a_revocation_reaches_what_is_being_handed_out() -> None:
    watched = Watched(None)
    watched.fetched.deliver(delivery(1, range(4)))
    opened = watched.fetched.open(10)
    opened.rows.popleft()
    watched.fetched.revoke(Revocation(0, 1, BitMap64([0, 2])))
    assert list(opened.rows) == [1, 3]
    assert watched.offsets_left() == [1, 3]


@pytest.mark.parametrize("handed_out", [0, 2])
async def test_what_waits_too_long_goes_back_and_what_was_handed_out_does_not(handed_out: int) -> None:
    watched = Watched(0.01)
    watched.fetched.deliver(delivery(1, range(4)))
    opened = watched.fetched.open(10)
    for _ in range(handed_out):
        opened.rows.popleft()
    assert await asyncio.wait_for(watched.returned.get(), 10) == (1, list(range(handed_out, 4)))
    assert watched.offsets_left() == []


async def test_what_came_later_may_wait_longer() -> None:
    watched = Watched(0.01)
    watched.fetched.deliver(delivery(1, range(2)))
    assert await asyncio.wait_for(watched.returned.get(), 10) == (1, [0, 1])
    watched.fetched.deliver(delivery(2, range(2, 4)))
    assert await asyncio.wait_for(watched.returned.get(), 10) == (2, [2, 3])


async def test_what_is_forgotten_is_told_and_makes_room_for_as_much() -> None:
    watched = Watched(None)
    watched.fetched.deliver(delivery(1, range(3)))
    watched.fetched.deliver(delivery(2, range(3, 5), range(7, 9)))
    opened = watched.fetched.open(10)
    assert opened.rows.popleft() == 0, "one is handed out"

    forgotten = watched.fetched.forget()

    assert [(lease, list(offsets)) for _, lease, offsets in forgotten] == [(1, [1, 2]), (2, [3, 4]), (2, [7, 8])]
    assert watched.dropped == 4, "room for what was opened is made when it is done with"
    assert not opened.rows
    assert watched.offsets_left() == []


async def test_there_may_be_nothing_to_forget() -> None:
    watched = Watched(None)
    assert watched.fetched.forget() == []
    assert watched.dropped == 0


async def test_all_who_wait_are_woken_and_who_gave_up_is_forgotten() -> None:
    watched = Watched(None)
    assert not watched.fetched.ready
    waiting = [asyncio.create_task(watched.fetched.wait()) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting[0]
    watched.fetched.deliver(delivery(1, range(1)))
    assert watched.fetched.ready
    await asyncio.gather(*waiting[1:])

    watched.fetched.take(1)
    waiting = [asyncio.create_task(watched.fetched.wait()) for _ in range(2)]
    await asyncio.sleep(0)
    watched.fetched.fail(Closed("over"))
    for task in waiting:
        with pytest.raises(Closed, match="over"):
            await task
