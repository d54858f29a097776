"""Small publishes: at once where nothing is under way, together where something is, each answered for itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from sealane.client.broker import Landed
from sealane.client.coalescing import (
    BATCH_MESSAGES,
    CALL_BYTES_MAX,
    CALL_MESSAGES_MAX,
    FLIGHTS_MAX,
    Coalescer,
    size_of_few,
)
from sealane.errors import DeadlineExceeded, InvalidMessage, QueueFull, SchemaMismatch
from sealane.message import Batch, Limits, Row, Stamp, from_payloads, from_rows
from sealane.node.receipts import Receipt, Receipts, Share

PATIENCE_SECONDS = 30.0


class Broker:
    """Keeps what it is handed until the test answers it."""

    def __init__(
        self,
        *,
        refuse: bytes | None = None,
        timeout_seconds: float = PATIENCE_SECONDS,
        gather_seconds_max: float = PATIENCE_SECONDS,
    ) -> None:
        self.taken: list[tuple[Batch, Landed]] = []
        self._refuse = refuse
        self.coalescer = Coalescer(self, self._take, timeout_seconds, gather_seconds_max=gather_seconds_max)
        self._offset = 0

    def build(self, rows: list[Row]) -> Batch:
        self._look_at([row.payload for row in rows])
        return from_rows(rows, Stamp(1, bytes(16)), limits=Limits())

    def build_plain(self, payloads: list[bytes]) -> Batch:
        self._look_at(payloads)
        return from_payloads(payloads, Stamp(1, bytes(16)), limits=Limits())

    def _look_at(self, payloads: list[bytes]) -> None:
        if self._refuse in payloads:
            raise InvalidMessage("payload", "is not wanted")

    def _take(self, batch: Batch, landed: Landed) -> None:
        self.taken.append((batch, landed))

    def payloads(self) -> list[list[bytes]]:
        return [batch.payloads() for batch, _ in self.taken]

    def store_all(self) -> None:
        while self.taken:
            self.store_first()

    def store_first(self) -> None:
        batch, landed = self.taken.pop(0)
        offsets = range(self._offset, self._offset + len(batch))
        self._offset = offsets.stop
        landed(Receipts(batch, [Share(0, None, offsets)]), None)

    def add_many(self, *payloads: bytes) -> asyncio.Future[Sequence[Receipt]]:
        return self.coalescer.add_many(payloads, sum(map(len, payloads)))

    async def send_one_by_one(self, *payloads: bytes) -> list[asyncio.Future[Receipt]]:
        """Each in a pass of the event loop of its own."""
        receipts = []
        for payload in payloads:
            receipts.append(self.coalescer.add(Row(payload)))
            await asyncio.sleep(0)
        return receipts


async def test_a_message_that_meets_nothing_under_way_goes_out_in_the_same_call() -> None:
    broker = Broker()
    receipt = broker.coalescer.add(Row(b"a"))
    assert broker.payloads() == [[b"a"]]
    broker.store_all()
    assert receipt.done(), "it is told in the moment in which the broker knows"
    assert (await receipt).offset == 0

    broker.coalescer.add(Row(b"b"))
    assert broker.payloads() == [[b"b"]]


async def test_what_comes_while_one_is_under_way_gathers_until_the_loop_comes_round() -> None:
    broker = Broker()
    receipts = [broker.coalescer.add(Row(b"%d" % number)) for number in range(64)]
    assert broker.payloads() == [[b"0"]]
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"0"], [b"%d" % number for number in range(1, 64)]]
    broker.store_all()
    assert [(await receipt).offset for receipt in receipts] == list(range(64))
    assert len({(await receipt).id for receipt in receipts[1:]}) == 63


async def test_order_is_kept_when_the_first_lands_before_the_rest_went_out() -> None:
    broker = Broker()
    first = broker.coalescer.add(Row(b"first"))
    second = broker.coalescer.add(Row(b"second"))
    broker.store_all()
    third = broker.coalescer.add(Row(b"third"))
    assert broker.payloads() == [], "the third does not overtake the second, which waits for the pass to end"
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"second", b"third"]]
    broker.store_all()
    assert [receipt.result().offset for receipt in (first, second, third)] == [0, 1, 2]


async def test_a_batch_is_closed_at_its_size() -> None:
    broker = Broker()
    for _ in range(1 + BATCH_MESSAGES):
        broker.coalescer.add(Row(b"x"))
    assert [len(batch) for batch, _ in broker.taken] == [1, BATCH_MESSAGES]
    broker.store_all()


async def test_behind_two_batches_the_rest_gathers_until_one_of_them_has_landed() -> None:
    broker = Broker()
    receipts = await broker.send_one_by_one(b"0", b"1", b"2", b"3", b"4")
    assert broker.payloads() == [[b"0"], [b"1"]]
    broker.store_first()
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"1"], [b"2", b"3", b"4"]]
    receipts += await broker.send_one_by_one(b"5")
    assert len(broker.taken) == FLIGHTS_MAX, "two are under way again"
    broker.store_all()
    await asyncio.sleep(0)
    broker.store_all()
    assert [receipt.result().offset for receipt in receipts] == list(range(6))


async def test_it_gathers_behind_two_batches_no_longer_than_it_may() -> None:
    broker = Broker(gather_seconds_max=0.01)
    await broker.send_one_by_one(b"0", b"1", b"2", b"3")
    assert broker.payloads() == [[b"0"], [b"1"]]
    await asyncio.sleep(0.02)  # A timer of the same loop, set later and for longer, so that it rings later.
    assert broker.payloads() == [[b"0"], [b"1"], [b"2", b"3"]]


async def test_a_full_batch_does_not_gather_any_longer() -> None:
    broker = Broker()
    await broker.send_one_by_one(b"0", b"1")
    for _ in range(BATCH_MESSAGES):
        broker.coalescer.add(Row(b"x"))
    assert [len(batch) for batch, _ in broker.taken] == [1, 1, BATCH_MESSAGES]


async def test_what_gathers_goes_when_a_batch_before_it_was_refused() -> None:
    broker = Broker()
    receipts = await broker.send_one_by_one(b"0", b"1", b"2")
    _, landed = broker.taken.pop(0)
    landed(None, InvalidMessage("payload", "is not wanted"))
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"1"], [b"2"]]
    broker.store_all()
    assert [receipt.result().offset for receipt in receipts[1:]] == [0, 1]
    with pytest.raises(InvalidMessage):
        await receipts[0]


async def test_what_gathers_goes_when_the_batches_before_it_are_past_their_deadline() -> None:
    broker = Broker(timeout_seconds=0.05)
    first, second, third = await broker.send_one_by_one(b"0", b"1", b"2")
    for late in (first, second):
        with pytest.raises(DeadlineExceeded):
            await late
    await asyncio.sleep(0)
    assert broker.payloads()[2:] == [[b"2"]]
    broker.store_all()
    assert third.done()


async def test_no_message_is_refused_for_another_ones_fault() -> None:
    broker = Broker(refuse=b"bad")
    receipts = [broker.coalescer.add(Row(payload)) for payload in (b"0", b"1", b"bad", b"3")]
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"0"], [b"1"], [b"3"]]
    broker.store_all()
    assert [receipts[place].result().offset for place in (0, 1, 3)] == [0, 1, 2]
    with pytest.raises(InvalidMessage, match="not wanted"):
        await receipts[2]


async def test_when_a_queue_is_full_those_it_still_takes_are_stored() -> None:
    broker = Broker()
    receipts = [broker.coalescer.add(Row(b"%d" % number)) for number in range(3)]
    await asyncio.sleep(0)
    (_, first), (_, others) = broker.taken
    broker.taken.clear()
    others(None, QueueFull("default/orders", 0, 1))
    assert broker.payloads() == [[b"1"], [b"2"]]
    (_, _), (_, last) = broker.taken
    last(None, QueueFull("default/orders", 0, 1))
    broker.taken.pop()
    broker.store_all()
    first(None, QueueFull("default/orders", 0, 1))
    assert receipts[1].result().offset == 0
    for place in (0, 2):
        with pytest.raises(QueueFull):
            await receipts[place]


async def test_a_deadline_is_each_ones_own_and_a_late_answer_changes_nothing() -> None:
    broker = Broker(timeout_seconds=0.05)
    loop = asyncio.get_running_loop()
    early = broker.coalescer.add(Row(b"early"))
    began = loop.time()
    await asyncio.sleep(0.03)
    late = broker.coalescer.add(Row(b"late"))
    with pytest.raises(DeadlineExceeded, match=r"was not done within 0\.05 s; it may still happen"):
        await early
    with pytest.raises(DeadlineExceeded):
        await late
    assert loop.time() - began >= 0.08
    broker.store_all()
    assert early.exception() is not None

    again = broker.coalescer.add(Row(b"again"))
    broker.store_all()
    assert again.done(), "what is past its deadline is not under way any more"


async def test_who_gave_up_is_not_told() -> None:
    broker = Broker()
    receipts = [broker.coalescer.add(Row(b"%d" % number)) for number in range(3)]
    await asyncio.sleep(0)
    for place in (0, 2):
        receipts[place].cancel()
    broker.store_all()
    assert receipts[1].result().offset == 1


async def test_what_several_calls_publish_is_one_batch_and_each_gets_the_receipts_of_its_own() -> None:
    broker = Broker()
    first = broker.add_many(b"0", b"1")
    second = broker.add_many(b"2", b"3", b"4")
    single = broker.coalescer.add(Row(b"5", key=b"k"))
    third = broker.add_many(b"6")
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"0", b"1"], [b"2", b"3", b"4", b"5", b"6"]]
    (_, (together, _)) = broker.taken
    ids = together.ids()
    broker.store_all()
    assert [receipt.offset for receipt in await first] == [0, 1]
    receipts = await second
    assert [receipt.offset for receipt in receipts] == [2, 3, 4]
    assert [receipt.id.bytes for receipt in receipts] == ids[:3]
    assert len(receipts) == 3
    assert (receipts[0].offset, receipts[-1].offset) == (2, 4)
    assert [receipt.offset for receipt in receipts[1:]] == [3, 4]
    assert (await single).offset == 5
    assert [receipt.id.bytes for receipt in await third] == ids[4:]
    with pytest.raises(IndexError):
        receipts[3]


async def test_calls_of_one_message_each_are_answered_with_one_receipt_each() -> None:
    broker = Broker()
    calls = [broker.add_many(b"%d" % number) for number in range(3)]
    await asyncio.sleep(0)
    broker.store_all()
    assert [[receipt.offset for receipt in await call] for call in calls] == [[0], [1], [2]]


async def test_a_call_is_not_spread_over_two_batches() -> None:
    broker = Broker()
    call = [b"x"] * CALL_MESSAGES_MAX
    for _ in range(5):
        broker.add_many(*call)
    assert [len(batch) for batch, _ in broker.taken] == [CALL_MESSAGES_MAX, BATCH_MESSAGES]

    broker = Broker()
    broker.coalescer.add(Row(b"first"))
    broker.coalescer.add(Row(b"second"))
    for _ in range(4):
        broker.add_many(*call)
    assert [len(batch) for batch, _ in broker.taken] == [1, 1 + 3 * CALL_MESSAGES_MAX]


async def test_no_call_is_refused_for_another_ones_fault() -> None:
    broker = Broker(refuse=b"bad")
    calls = [broker.add_many(*payloads) for payloads in ((b"0",), (b"1", b"2"), (b"3", b"bad"), (b"4",))]
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"0"], [b"1", b"2"], [b"4"]]
    broker.store_all()
    assert [[receipt.offset for receipt in await calls[place]] for place in (0, 1, 3)] == [[0], [1, 2], [3]]
    with pytest.raises(InvalidMessage, match="not wanted"):
        await calls[2]


async def test_the_call_whose_message_does_not_fit_the_schema_is_told_which_and_the_others_go_again() -> None:
    broker = Broker()
    first = broker.add_many(b"0")
    calls = [broker.add_many(*payloads) for payloads in ((b"1", b"2"), (b"3", b"misfit"), (b"4",))]
    await asyncio.sleep(0)
    (_, (_, landed)) = broker.taken
    broker.taken.pop()
    landed(None, SchemaMismatch("default/orders", 2, 3, "$.amount", "is missing"))
    with pytest.raises(SchemaMismatch) as refused:
        await calls[1]
    assert (refused.value.index, refused.value.path) == (1, "$.amount")
    assert broker.payloads() == [[b"0"], [b"1", b"2", b"4"]]
    broker.store_all()
    assert [receipt.offset for call in (first, calls[0], calls[2]) for receipt in await call] == [0, 1, 2, 3]


async def test_what_gathers_is_sent_at_once_where_something_must_not_overtake_it() -> None:
    broker = Broker()
    broker.add_many(b"0")
    broker.add_many(b"1")
    broker.coalescer.flush()
    assert broker.payloads() == [[b"0"], [b"1"]]


async def test_whose_caller_has_given_up_is_not_sent_any_more() -> None:
    broker = Broker()
    broker.add_many(b"0")
    given_up, waiting = broker.add_many(b"1"), broker.add_many(b"2")
    given_up.cancel()
    await asyncio.sleep(0)
    assert broker.payloads() == [[b"0"], [b"2"]]
    broker.store_all()
    assert [receipt.offset for receipt in await waiting] == [1]


def test_few_and_small_payloads_gather_and_others_do_not() -> None:
    assert size_of_few([b"ab", b"c"]) == 3
    assert size_of_few((b"",)) == 0
    assert size_of_few([b"x"] * CALL_MESSAGES_MAX) == CALL_MESSAGES_MAX
    assert size_of_few([b"x"] * (CALL_MESSAGES_MAX + 1)) is None
    assert size_of_few([bytes(CALL_BYTES_MAX)]) == CALL_BYTES_MAX
    assert size_of_few([bytes(CALL_BYTES_MAX), b"x"]) is None
    assert size_of_few([]) is None
    assert size_of_few(b"payload") is None
    assert size_of_few([b"x", 7]) is None
