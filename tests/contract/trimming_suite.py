"""What every engine promises of what is let go of: the beginning of a log, and a whole partition."""

from __future__ import annotations

import pytest

from sealane.engine import Engine
from sealane.errors import Fenced, StorageError
from tests.contract.owners import BIG, BILLS, ORDERS, Owner, numbered


class TrimmingSuite:
    async def test_reads_begin_at_the_trim(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for number in range(4):
            await owner.commit(numbered(5, 5 * number), b"%d" % number)
        await engine.trim(ORDERS, messages_before=10, journal_before=3)
        assert await owner.payloads() == [b"%d" % number for number in range(10, 20)]
        assert await engine.read_journal(ORDERS, 0) == [(3, b"3")]
        assert engine.recent(ORDERS, 9) is None
        opened = await engine.open(ORDERS)
        assert (opened.start, opened.end, opened.journal_start, opened.journal_end) == (10, 20, 3, 4)
        assert await engine.offset_at(ORDERS, 0) == 10

    async def test_of_a_batch_that_is_trimmed_inside_the_rest_is_read_and_nothing_else(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(10))
        await engine.trim(ORDERS, messages_before=4)
        (stored,) = await engine.read(ORDERS, 0, bytes_max=BIG)
        assert (stored.base, stored.stop) == (4, 10)
        assert await owner.payloads() == [b"%d" % number for number in range(4, 10)]

    async def test_a_trim_never_moves_backwards_and_never_beyond_the_end(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(10), b"j")
        await engine.trim(ORDERS, messages_before=6, journal_before=1)
        await engine.trim(ORDERS, messages_before=2)
        assert (await engine.open(ORDERS)).start == 6
        await engine.trim(ORDERS, messages_before=1_000, journal_before=1_000)
        opened = await engine.open(ORDERS)
        assert (opened.start, opened.end, opened.journal_start, opened.journal_end) == (10, 10, 1, 1)
        assert opened.lost == ()

    async def test_a_log_trimmed_to_its_end_goes_on_from_there(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3), b"j")
        await engine.trim(ORDERS, messages_before=3, journal_before=1)
        await owner.commit(numbered(1, 3), b"k")
        assert await owner.payloads() == [b"3"]
        assert await engine.read_journal(ORDERS, 0) == [(1, b"k")]

    async def test_what_a_journal_entry_holds_is_told_and_nothing_is_forgotten_for_it(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for number in range(4):
            await owner.commit(journal=b"%d" % number)
        assert (await engine.open(ORDERS)).journal_folded == 0
        await engine.trim(ORDERS, journal_folded=2)
        await engine.trim(ORDERS, journal_folded=1)
        opened = await engine.open(ORDERS)
        assert (opened.journal_start, opened.journal_end, opened.journal_folded) == (0, 4, 2)
        assert [number for number, _ in await engine.read_journal(ORDERS, 0)] == [0, 1, 2, 3]
        await engine.trim(ORDERS, journal_before=3)
        assert (await engine.open(ORDERS)).journal_folded == 3

    async def test_a_dropped_partition_is_gone_and_its_owner_is_fenced(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        bills = await Owner.of(engine, BILLS)
        await owner.commit(numbered(3), b"j")
        await bills.commit(numbered(1))
        await engine.drop(ORDERS)
        assert await engine.read(ORDERS, 0, bytes_max=BIG) == []
        assert await engine.read_journal(ORDERS, 0) == []
        assert engine.recent(ORDERS, 0) is None
        with pytest.raises(Fenced):
            owner.commit(numbered(1, 3))
        assert await bills.payloads() == [b"0"]

    async def test_a_dropped_partition_comes_back_only_as_another_incarnation(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3))
        await engine.drop(ORDERS)
        with pytest.raises(StorageError, match="incarnation"):
            await engine.open(ORDERS)
        again = await Owner.of(engine, ORDERS._replace(incarnation=2))
        assert again.opened.end == 0
        await again.commit(numbered(1, 42))
        assert await again.payloads() == [b"42"]
