"""What every engine promises of reading: what was committed is found, by its offset and by its time."""

from __future__ import annotations

from sealane.engine import Engine
from sealane.message import Limits, Stamp, from_payloads
from tests.contract.owners import BIG, BILLS, ORDERS, Clock, Owner, batch, numbered


class ReadingSuite:
    async def test_a_new_partition_is_empty_and_starts_at_zero(self, engine: Engine) -> None:
        opened = await engine.open(ORDERS)
        assert (opened.start, opened.end, opened.journal_start, opened.journal_end) == (0, 0, 0, 0)
        assert opened.lost == ()
        assert opened.journal_lost == ()
        assert await engine.read(ORDERS, 0, bytes_max=BIG) == []
        assert await engine.read_journal(ORDERS, 0) == []

    async def test_a_partition_nobody_opened_reads_as_empty(self, engine: Engine) -> None:
        assert await engine.read(BILLS, 0, bytes_max=BIG) == []
        assert await engine.read_journal(BILLS, 0) == []
        assert engine.recent(BILLS, 0) is None
        assert await engine.offset_at(BILLS, 0) == 0
        await engine.trim(BILLS, messages_before=1)
        await engine.drop(BILLS)

    async def test_what_was_committed_is_read_back_in_order(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3), b"first")
        await owner.commit(numbered(2, 3), b"second")
        await owner.commit(None, b"third")
        assert await owner.payloads() == [b"0", b"1", b"2", b"3", b"4"]
        assert await engine.read_journal(ORDERS, 0) == [(0, b"first"), (1, b"second"), (2, b"third")]
        assert await engine.read_journal(ORDERS, 2) == [(2, b"third")]
        assert await engine.read_journal(ORDERS, 3) == []

    async def test_a_read_begins_with_the_batch_that_holds_the_offset(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3))
        await owner.commit(numbered(3, 3))
        (stored,) = await engine.read(ORDERS, 4, bytes_max=BIG)
        assert (stored.base, stored.stop) == (3, 6)

    async def test_a_read_at_or_after_the_end_is_empty(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3))
        assert await engine.read(ORDERS, 3, bytes_max=BIG) == []
        assert await engine.read(ORDERS, 99, bytes_max=BIG) == []

    async def test_a_read_stops_at_about_its_bytes_and_gives_at_least_one_batch(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for _ in range(5):
            await owner.commit(batch(bytes(10_000)))
        assert [each.base for each in await engine.read(ORDERS, 1, bytes_max=1)] == [1]
        some = await engine.read(ORDERS, 0, bytes_max=25_000)
        assert [each.base for each in some] == [0, 1, 2]

    async def test_a_read_has_no_batch_that_begins_where_it_is_to_stop(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for number in range(4):
            await owner.commit(numbered(3, 3 * number))

        async def bases(offset: int, stop: int) -> list[int]:
            return [each.base for each in await engine.read(ORDERS, offset, bytes_max=BIG, stop=stop)]

        assert await bases(0, 6) == [0, 3]
        assert await bases(0, 7) == [0, 3, 6]
        assert await bases(4, 5) == [3]
        assert await bases(6, 6) == []
        assert await bases(9, 99) == [9]
        await engine.trim(ORDERS, messages_before=6)
        assert await bases(0, 6) == []

    async def test_everything_about_a_message_survives(self, engine: Engine) -> None:
        sent = from_payloads(
            [b"x", b"y"], Stamp(1, bytes(16)), limits=Limits(), key=b"k", headers={"a": "b"}, priority=9, expires_us=99
        )
        owner = await Owner.of(engine)
        await owner.commit(sent)
        (stored,) = await engine.read(ORDERS, 0, bytes_max=BIG)
        assert stored.batch.records.equals(sent.records)
        assert stored.batch.meta == sent.meta

    async def test_recent_gives_the_batch_that_holds_an_offset_without_waiting(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(3))
        await owner.commit(numbered(2, 3))
        stored = engine.recent(ORDERS, 4)
        assert stored is not None
        assert (stored.base, stored.batch.payloads()) == (3, [b"3", b"4"])
        assert engine.recent(ORDERS, 5) is None

    async def test_it_knows_when_a_message_was_committed(self, engine: Engine, clock: Clock) -> None:
        assert engine.committed_at(ORDERS, 0) is None
        owner = await Owner.of(engine)
        assert engine.committed_at(ORDERS, 0) is None
        first_us = clock.now_us
        await owner.commit(numbered(3))
        assert engine.committed_at(ORDERS, 2) == first_us
        clock.advance(10)
        await owner.commit(numbered(2, 3))
        # Batches that were joined since may tell the time of their last.
        assert first_us <= (engine.committed_at(ORDERS, 0) or 0) <= clock.now_us
        assert engine.committed_at(ORDERS, 4) == clock.now_us
        assert engine.committed_at(ORDERS, 5) is None

    async def test_a_journal_is_read_in_pieces(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        for number in range(20):
            await owner.commit(journal=b"%02d" % number * 50)
        read: list[tuple[int, bytes]] = []
        while found := await engine.read_journal(ORDERS, len(read), bytes_max=1):
            read.extend(found)
        assert read == [(number, b"%02d" % number * 50) for number in range(20)]

    async def test_a_journal_entry_is_found_by_its_time(self, engine: Engine, clock: Clock) -> None:
        owner = await Owner.of(engine)
        times = []
        for number in range(3):
            clock.advance(1)
            times.append(clock())
            await owner.commit(journal=b"%d" % number)
        assert [engine.journal_at(ORDERS, time_us) for time_us in times] == [0, 1, 2]
        assert engine.journal_at(ORDERS, times[-1] + 1) == 3
        assert engine.journal_at(BILLS, 0) == 0

    async def test_an_offset_is_found_by_the_time_of_its_commit(self, engine: Engine, clock: Clock) -> None:
        owner = await Owner.of(engine)
        times = []
        for number in range(4):
            times.append(clock())
            await owner.commit(numbered(10, 10 * number))
            clock.advance(60)
        assert await engine.offset_at(ORDERS, 0) == 0
        assert [await engine.offset_at(ORDERS, time) for time in times] == [0, 10, 20, 30]
        assert await engine.offset_at(ORDERS, times[1] + 1) == 20
        assert await engine.offset_at(ORDERS, times[-1] + 1) == 40

    async def test_a_clock_that_jumps_back_does_not_confuse_the_search(self, engine: Engine, clock: Clock) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(1))
        before = clock()
        clock.advance(-3600)
        await owner.commit(numbered(1, 1))
        assert await engine.offset_at(ORDERS, clock()) == 0
        assert await engine.offset_at(ORDERS, before) == 0
