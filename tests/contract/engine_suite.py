"""What every engine promises, as tests. An engine passes by inheriting these classes and saying how it is started."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

import pytest

from sealane.engine import Append, Engine
from sealane.errors import Closed, Fenced
from tests.contract.committing_suite import CommittingSuite
from tests.contract.keys_suite import KeysSuite
from tests.contract.owners import BIG, BILLS, ORDERS, Clock, Owner, batch, numbered, payloads
from tests.contract.reading_suite import ReadingSuite
from tests.contract.trimming_suite import TrimmingSuite


class EngineSuite(ReadingSuite, CommittingSuite, TrimmingSuite, KeysSuite):
    """The contract of a running engine."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def engine(self, clock: Clock) -> Engine:
        raise NotImplementedError

    async def test_it_is_an_engine(self, engine: Engine) -> None:
        assert isinstance(engine, Engine)
        assert engine.failure is None

    async def test_usage_grows_with_what_is_stored(self, engine: Engine) -> None:
        before = engine.usage().bytes_used
        owner = await Owner.of(engine)
        for _ in range(8):
            await owner.commit(batch(os.urandom(1 << 20)))
        assert engine.usage().bytes_used >= before + (4 << 20)

    async def test_closing_finishes_what_was_called(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        waiting = [owner.commit(numbered(1)) for _ in range(10)]
        await engine.close()
        await asyncio.gather(*waiting)

    async def test_a_closed_engine_says_so_and_may_be_closed_again(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await engine.close()
        await engine.close()
        with pytest.raises(Closed):
            owner.commit(numbered(1))
        with pytest.raises(Closed):
            await engine.open(BILLS)
        with pytest.raises(Closed):
            await engine.put("a", b"", expected=0)


Reopen = Callable[[], Awaitable[Engine]]


class DurableEngineSuite(EngineSuite):
    """The contract of an engine whose data outlives it. `reopen` closes the running one and starts another."""

    @pytest.fixture
    def reopen(self) -> Reopen:
        raise NotImplementedError

    async def test_everything_is_there_after_a_restart(self, engine: Engine, reopen: Reopen) -> None:
        owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS, sealed=False)
        for number in range(5):
            await engine.commit([owner.append(numbered(3, 3 * number), b"%d" % number), bills.append(numbered(1))])
        version = await engine.put("a", b"1", expected=0)
        engine = await reopen()
        owner = await Owner.of(engine)
        assert (owner.opened.start, owner.opened.end, owner.opened.journal_end) == (0, 15, 5)
        assert await owner.payloads() == [b"%d" % number for number in range(15)]
        assert [data for _, data in await engine.read_journal(ORDERS, 0)] == [b"%d" % number for number in range(5)]
        assert await payloads(engine, BILLS) == [b"0"] * 5
        value = await engine.get("a")
        assert value is not None
        assert (value.data, value.version) == (b"1", version)

    async def test_epochs_grow_over_restarts(self, engine: Engine, reopen: Reopen) -> None:
        epochs = []
        for _ in range(3):
            owner = await Owner.of(engine)
            epochs.append(owner.epoch)
            await owner.commit(numbered(1))
            engine = await reopen()
        assert epochs == sorted(set(epochs))
        with pytest.raises(Fenced):
            engine.commit([Append(ORDERS, epochs[-1], numbered(1), 3)])

    async def test_a_reopened_log_goes_on_where_it_ended(self, engine: Engine, reopen: Reopen) -> None:
        for number in range(4):
            owner = await Owner.of(engine)
            await owner.commit(numbered(2, 2 * number), b"%d" % number)
            engine = await reopen()
        assert await payloads(engine, ORDERS) == [b"%d" % number for number in range(8)]
        assert len(await engine.read_journal(ORDERS, 0)) == 4

    async def test_trims_and_drops_outlive_a_restart(self, engine: Engine, reopen: Reopen) -> None:
        owner, bills = await Owner.of(engine), await Owner.of(engine, BILLS)
        for number in range(4):
            await owner.commit(numbered(5, 5 * number), b"%d" % number)
        await bills.commit(numbered(1))
        await engine.trim(ORDERS, messages_before=10, journal_before=2)
        await engine.drop(BILLS)
        for _ in range(2):
            engine = await reopen()
            assert await payloads(engine, ORDERS) == [b"%d" % number for number in range(10, 20)]
            assert await engine.read_journal(ORDERS, 0) == [(2, b"2"), (3, b"3")]
            assert await engine.read(BILLS, 0, bytes_max=BIG) == []

    async def test_a_trim_inside_a_batch_outlives_a_restart(self, engine: Engine, reopen: Reopen) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(10))
        await engine.trim(ORDERS, messages_before=4)
        engine = await reopen()
        assert await payloads(engine, ORDERS) == [b"%d" % number for number in range(4, 10)]

    async def test_a_log_trimmed_to_its_end_never_gives_an_offset_twice(self, engine: Engine, reopen: Reopen) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(5), b"j")
        await engine.trim(ORDERS, messages_before=5, journal_before=1)
        engine = await reopen()
        owner = await Owner.of(engine)
        assert (owner.opened.start, owner.opened.end) == (5, 5)
        assert (owner.opened.journal_start, owner.opened.journal_end) == (1, 1)
        await owner.commit(numbered(1, 5))
        engine = await reopen()
        assert await payloads(engine, ORDERS) == [b"5"]

    async def test_times_are_found_after_a_restart(self, engine: Engine, clock: Clock, reopen: Reopen) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(2))
        clock.advance(60)
        later = clock()
        await owner.commit(numbered(2))
        engine = await reopen()
        assert await engine.offset_at(ORDERS, later) == 2

    async def test_versions_never_repeat_over_a_restart(self, engine: Engine, reopen: Reopen) -> None:
        first = await engine.put("a", b"", expected=0)
        await engine.delete("a", expected=first)
        engine = await reopen()
        assert await engine.put("a", b"", expected=0) > first
