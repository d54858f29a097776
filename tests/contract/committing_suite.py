"""What every engine promises of commits: their order, all or nothing, and who may make them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable

import pytest

from sealane.engine import Append, Engine
from sealane.errors import Fenced, OffsetMismatch
from tests.contract.owners import BILLS, ORDERS, Owner, numbered


class CommittingSuite:
    # --- order and visibility -----------------------------------------------------------------------------------

    async def test_order_is_fixed_by_the_call_and_not_by_the_await(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        waiting = [owner.commit(numbered(1, number)) for number in range(20)]
        for each in reversed(waiting):
            await each
        assert await owner.payloads() == [b"%d" % number for number in range(20)]

    async def test_commits_resolve_in_the_order_they_were_called(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        order: list[int] = []

        async def wait(number: int, committed: Awaitable[None]) -> None:
            await committed
            order.append(number)

        await asyncio.gather(*(wait(number, owner.commit(numbered(1))) for number in range(20)))
        assert order == list(range(20))

    async def test_a_commit_is_readable_once_it_resolves(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for number in range(10):
            await owner.commit(numbered(1, number), b"%d" % number)
            assert engine.recent(ORDERS, number) is not None
            assert len(await engine.read_journal(ORDERS, number)) == 1

    async def test_a_commit_whose_caller_went_away_still_happens(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        task = asyncio.ensure_future(owner.commit(numbered(1)))
        task.cancel()
        await owner.commit(numbered(1, 1))
        assert await owner.payloads() == [b"0", b"1"]

    async def test_a_commit_at_another_offset_than_the_end_is_refused_and_changes_nothing(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(2))
        with pytest.raises(OffsetMismatch) as refused:
            engine.commit([Append(ORDERS, owner.epoch, numbered(1), 1)])
        assert (refused.value.expected, refused.value.actual) == (1, 2)
        with pytest.raises(OffsetMismatch):
            engine.commit([Append(ORDERS, owner.epoch, numbered(1), 2, b"journal", 5)])
        await owner.commit(numbered(1, 2))
        assert await owner.payloads() == [b"0", b"1", b"2"]

    async def test_offsets_count_commits_that_are_still_on_their_way(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        first = owner.commit(numbered(2))
        with pytest.raises(OffsetMismatch):
            engine.commit([Append(ORDERS, owner.epoch, numbered(1), 0)])
        second = owner.commit(numbered(1, 2))
        await first
        await second

    # --- atomicity ----------------------------------------------------------------------------------------------

    async def test_a_commit_across_partitions_lands_in_all_of_them(self, engine: Engine) -> None:
        if not engine.atomic_across_partitions:
            pytest.skip("this engine commits to one partition at a time")
        orders, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
        await engine.commit([orders.append(numbered(2), b"j"), bills.append(numbered(1, 7))])
        assert await orders.payloads() == [b"0", b"1"]
        assert await bills.payloads() == [b"7"]
        assert await engine.read_journal(ORDERS, 0) == [(0, b"j")]

    async def test_a_commit_of_which_one_part_is_refused_lands_in_none(self, engine: Engine) -> None:
        if not engine.atomic_across_partitions:
            pytest.skip("this engine commits to one partition at a time")
        orders, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
        good = Append(ORDERS, orders.epoch, numbered(1), 0, b"j", 0)
        with pytest.raises(OffsetMismatch):
            engine.commit([good, Append(BILLS, bills.epoch, numbered(1), 5)])
        with pytest.raises(Fenced):
            engine.commit([good, Append(BILLS, bills.epoch - 1, numbered(1), 0)])
        await engine.commit([good])
        assert await orders.payloads() == [b"0"]
        assert await bills.payloads() == []

    async def test_a_commit_may_append_twice_to_one_partition(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await engine.commit([owner.append(numbered(2), b"a"), owner.append(numbered(1, 2), b"b")])
        assert await owner.payloads() == [b"0", b"1", b"2"]
        assert await engine.read_journal(ORDERS, 0) == [(0, b"a"), (1, b"b")]

    async def test_a_commit_of_nothing_resolves(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await engine.commit([])
        await owner.commit()
        assert await owner.payloads() == []

    # --- epochs -------------------------------------------------------------------------------------------------

    async def test_a_new_owner_has_a_higher_epoch_and_fences_the_old_one(self, engine: Engine) -> None:
        old = await Owner.of(engine)
        await old.commit(numbered(1))
        new = await Owner.of(engine)
        assert new.epoch > old.epoch
        with pytest.raises(Fenced) as fenced:
            old.commit(numbered(1))
        assert (fenced.value.epoch, fenced.value.current) == (old.epoch, new.epoch)
        await new.commit(numbered(1, 1))
        assert await new.payloads() == [b"0", b"1"]

    async def test_a_new_owner_sees_what_the_old_one_had_called(self, engine: Engine) -> None:
        old = await Owner.of(engine)
        waiting = [old.commit(numbered(10, 10 * number), b"j") for number in range(5)]
        new = await Owner.of(engine)
        assert (new.opened.end, new.opened.journal_end) == (50, 5)
        await asyncio.gather(*waiting)

    async def test_a_partition_that_was_never_opened_takes_no_commit(self, engine: Engine) -> None:
        with pytest.raises(Fenced):
            engine.commit([Append(ORDERS, 1, numbered(1), 0)])
