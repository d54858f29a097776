"""What every engine promises, as tests. An engine passes by inheriting these classes and saying how it is started."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest

from sealane.engine import Append, Engine, Opened, PartitionKey
from sealane.errors import Closed, Fenced, OffsetMismatch, StorageError, VersionMismatch
from sealane.message import Batch, Limits, Stamp, from_payloads

ORDERS = PartitionKey("default", "orders", 1, 0)
BILLS = PartitionKey("default", "bills", 1, 0)
BIG = 1 << 30


class Clock:
    """A clock that a test moves, in microseconds."""

    def __init__(self) -> None:
        self.now_us = 1_700_000_000_000_000

    def __call__(self) -> int:
        return self.now_us

    def advance(self, seconds: float) -> None:
        self.now_us += int(seconds * 1_000_000)


def batch(*payloads: bytes) -> Batch:
    return from_payloads(payloads, Stamp(1_700_000_000_000_000, bytes(16)), limits=Limits())


def numbered(count: int, start: int = 0) -> Batch:
    return batch(*(b"%d" % number for number in range(start, start + count)))


class Owner:
    """The owner of one partition, which knows where its next appends must land."""

    def __init__(self, engine: Engine, partition: PartitionKey, opened: Opened) -> None:
        self.engine = engine
        self.partition = partition
        self.opened = opened
        self.epoch = opened.epoch
        self.offset = opened.end
        self.journal_offset = opened.journal_end

    @classmethod
    async def of(cls, engine: Engine, partition: PartitionKey = ORDERS, *, sealed: bool = True) -> Owner:
        return cls(engine, partition, await engine.open(partition, sealed=sealed))

    def append(self, messages: Batch | None = None, journal: bytes | None = None) -> Append:
        made = Append(self.partition, self.epoch, messages, self.offset, journal, self.journal_offset)
        self.offset += len(messages) if messages is not None else 0
        self.journal_offset += journal is not None
        return made

    def commit(self, messages: Batch | None = None, journal: bytes | None = None) -> Awaitable[None]:
        return self.engine.commit([self.append(messages, journal)])

    async def payloads(self, offset: int = 0) -> list[bytes]:
        return await payloads(self.engine, self.partition, offset)


async def payloads(engine: Engine, partition: PartitionKey, offset: int = 0) -> list[bytes]:
    """Every payload from `offset` on, after checking that what was read hangs together."""
    found: list[bytes] = []
    stored = await engine.read(partition, offset, bytes_max=BIG)
    for earlier, later in pairwise(stored):
        assert earlier.stop <= later.base
    for each in stored:
        found.extend(each.batch.payloads()[max(0, offset - each.base) :])
    return found


class EngineSuite:
    """The contract of a running engine."""

    @pytest.fixture
    def clock(self) -> Clock:
        return Clock()

    @pytest.fixture
    async def engine(self, clock: Clock) -> Engine:
        raise NotImplementedError

    # --- offsets ------------------------------------------------------------------------------------------------

    async def test_it_is_an_engine(self, engine: Engine) -> None:
        assert isinstance(engine, Engine)
        assert engine.failure is None

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

    # --- time ---------------------------------------------------------------------------------------------------

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

    # --- trim and drop ------------------------------------------------------------------------------------------

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

    async def test_a_trim_inside_a_batch_keeps_the_batch_readable(self, engine: Engine) -> None:
        owner = await Owner.of(engine)
        await owner.commit(numbered(10))
        await engine.trim(ORDERS, messages_before=4)
        (stored,) = await engine.read(ORDERS, 0, bytes_max=BIG)
        assert stored.stop == 10
        assert stored.base <= 4

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

    # --- keys ---------------------------------------------------------------------------------------------------

    async def test_a_key_is_set_only_by_who_knows_its_version(self, engine: Engine) -> None:
        first = await engine.put("a", b"1", expected=0)
        value = await engine.get("a")
        assert value is not None
        assert (value.data, value.version, value.expires_us) == (b"1", first, None)
        with pytest.raises(VersionMismatch) as lost:
            await engine.put("a", b"2", expected=0)
        assert (lost.value.key, lost.value.expected, lost.value.actual) == ("a", 0, first)
        second = await engine.put("a", b"2", expected=first)
        assert second > first
        with pytest.raises(VersionMismatch):
            await engine.delete("a", expected=first)
        await engine.delete("a", expected=second)
        assert await engine.get("a") is None

    async def test_versions_of_a_key_never_repeat(self, engine: Engine) -> None:
        first = await engine.put("a", b"1", expected=0)
        await engine.delete("a", expected=first)
        assert await engine.put("a", b"1", expected=0) > first

    async def test_of_many_at_once_one_wins(self, engine: Engine) -> None:
        answers = await asyncio.gather(
            *(engine.put("leader", b"%d" % number, expected=0) for number in range(10)), return_exceptions=True
        )
        assert sum(isinstance(answer, int) for answer in answers) == 1
        assert sum(isinstance(answer, VersionMismatch) for answer in answers) == 9

    async def test_a_leased_key_vanishes_unless_it_is_put_again(self, engine: Engine, clock: Clock) -> None:
        version = await engine.put("lease", b"me", expected=0, lease_seconds=10)
        clock.advance(9)
        version = await engine.put("lease", b"me", expected=version, lease_seconds=10)
        clock.advance(9)
        value = await engine.get("lease")
        assert value is not None
        assert value.expires_us == clock() + 1_000_000
        clock.advance(1)
        assert await engine.get("lease") is None
        assert await engine.scan("lease") == []
        with pytest.raises(VersionMismatch):
            await engine.put("lease", b"me", expected=version)
        assert await engine.put("lease", b"you", expected=0) > version

    async def test_a_scan_gives_the_keys_of_a_prefix_in_order(self, engine: Engine) -> None:
        for key in ("b/2", "a/1", "b/1", "b", "c/1", "b/\u00ff"):
            await engine.put(key, key.encode(), expected=0)
        found = await engine.scan("b/")
        assert [key for key, _ in found] == ["b/1", "b/2", "b/\u00ff"]
        assert [value.data for _, value in found] == [b"b/1", b"b/2", "b/\u00ff".encode()]
        assert len(await engine.scan("")) == 6

    # --- life cycle ---------------------------------------------------------------------------------------------

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
