"""A pull in pieces: each with a lease of its own, none larger than it may be; and how much of several is still open."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import LeaseLost, SubscriptionNotFound, TopicNotFound
from sealane.message import Limits, Stamp, from_payloads
from sealane.node.attachment import Attachment
from sealane.node.deliveries import Delivery, Part
from sealane.node.pulling.opened import Opened
from sealane.node.pulling.pieces import give_back, pieces
from sealane.node.pulling.pull import PULL_MESSAGES_MAX, Pulled, ticket_of
from sealane.node.pulling.ticket import LEASES_MAX, SECRET_BYTES, Ticket
from sealane.node.session import Session
from sealane.security.principals import ADMIN
from tests.unit.node.running_node import Running, running_node, until

KiB = 1 << 10


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with running_node() as running:
        yield running


@pytest.fixture
def session(running: Running) -> Session:
    return Session(running.node, ADMIN)


async def pull(session: Session, most: int = 100) -> Pulled:
    return await session.pull("orders", "billing", messages_max=most, wait_seconds=0)


def payloads(pulled: Pulled) -> list[bytes]:
    return [payload for each in pulled.deliveries for part in each.parts for payload in part.batch.payloads()]


# --- cutting ----------------------------------------------------------------------------------------------------------


def made_up(parts: list[list[int]]) -> Pulled:
    """A pull of deliveries with one part each, of payloads of these sizes."""
    deliveries, offset = [], 0
    for lease, sizes in enumerate(parts):
        batch = from_payloads([bytes(size) for size in sizes], Stamp(1, bytes(16)), limits=Limits())
        part = Part(range(offset, offset + len(sizes)), batch)
        deliveries.append(Delivery("default/t", lease % 3, "s", lease, 1, (part,), ()))
        offset += len(sizes)
    return Pulled(ticket_of(bytes(SECRET_BYTES), deliveries).text(), tuple(deliveries), 1)


@given(
    parts=st.lists(st.lists(st.integers(0, 3_000), min_size=1, max_size=30), min_size=1, max_size=6),
    bytes_max=st.integers(500, 10_000),
    messages_max=st.integers(1, 40),
)
def test_pieces_have_all_of_it_in_order_and_each_fits(
    parts: list[list[int]], bytes_max: int, messages_max: int
) -> None:
    pulled = made_up(parts)
    found = pieces(pulled, bytes_max=bytes_max, messages_max=messages_max)
    assert [len(payload) for piece in found for payload in payloads(piece)] == [size for each in parts for size in each]
    for piece in found:
        assert piece.lease is not None
        assert len(piece) <= messages_max
        size = sum(map(len, payloads(piece)))
        assert size <= bytes_max or len(piece) == 1
        assert Ticket.read(piece.lease) == ticket_of(bytes(SECRET_BYTES), piece.deliveries)
    places = [(run.lease, run.first, run.last) for piece in found for run in Ticket.read(piece.lease or "").leases]
    assert len(places) == len(set(places))


def test_nothing_is_no_piece() -> None:
    assert pieces(Pulled(None, ()), bytes_max=1, messages_max=1) == []


def test_what_fits_is_one_piece_with_the_lease_that_it_had() -> None:
    pulled = made_up([[10, 10], [10]])
    assert pieces(pulled, bytes_max=KiB, messages_max=3) == [pulled]


# --- answering for a piece --------------------------------------------------------------------------------------------


async def test_a_piece_is_answered_for_alone(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"1", b"2", b"3", b"4"])
    first, second = pieces(await pull(session), bytes_max=KiB, messages_max=2)
    assert (payloads(first), payloads(second)) == ([b"1", b"2"], [b"3", b"4"])
    await (await session.held("orders", "billing", str(first.lease))).ack()
    await (await session.held("orders", "billing", str(first.lease))).ack()
    held = await session.held("orders", "billing", str(second.lease))
    await held.nack(None, delay=0, reason=None)
    assert payloads(await pull(session)) == [b"3", b"4"]
    with pytest.raises(LeaseLost):
        await held.ack()


async def test_what_is_given_back_is_there_at_once_and_was_no_attempt(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"1", b"2", b"3"])
    first, second = pieces(await pull(session), bytes_max=KiB, messages_max=2)
    give_back(second)
    again = await pull(session)
    assert payloads(again) == [b"3"]
    assert again.deliveries[0].attempts == ()
    await (await session.held("orders", "billing", str(first.lease))).ack()


async def publish_with_gaps(running: Running, count: int) -> None:
    """One batch of which every other message waits for an hour."""
    late = datetime.fromtimestamp(running.clock() / 1e6, UTC) + timedelta(hours=1)
    columns = {
        "payload": [b"%d" % number for number in range(count)],
        "deliver_at": pa.array([late if number % 2 else None for number in range(count)], pa.timestamp("us", "UTC")),
    }
    await running.lane.publish_many("orders", pa.table(columns))


async def test_answers_may_be_repeated_where_messages_do_not_lie_together(running: Running, session: Session) -> None:
    await publish_with_gaps(running, 20)
    pulled = await pull(session)
    assert len(pulled) == 10
    held = await session.held("orders", "billing", str(pulled.lease))
    assert await held.extend(60) == running.clock() + 60_000_000
    for _ in range(2):
        await held.ack()
    running.clock.pass_seconds(3_601)
    assert len(await session.pull("orders", "billing", messages_max=100, wait_seconds=30)) == 10, "and those alone"


async def test_a_lease_of_very_many_parts_can_be_answered_for_once(running: Running, session: Session) -> None:
    await publish_with_gaps(running, 2 * LEASES_MAX + 2)
    pulled = await pull(session, 1_000)
    assert len(pulled) == LEASES_MAX + 1
    assert len(Ticket.read(str(pulled.lease)).leases) == 1
    held = await session.held("orders", "billing", str(pulled.lease))
    await held.ack()
    with pytest.raises(LeaseLost):
        await held.ack()


async def test_whoever_is_cancelled_at_the_very_end_gives_everything_back(
    running: Running, session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    await running.lane.publish_many("orders", [b"1", b"2"])
    leaving, detach = asyncio.Event(), Attachment.detach

    async def slowly(attachment: Attachment) -> None:
        leaving.set()
        await asyncio.sleep(0)
        await detach(attachment)

    monkeypatch.setattr(Attachment, "detach", slowly)
    pulling = asyncio.create_task(pull(session))
    await leaving.wait()
    pulling.cancel()
    await asyncio.wait([pulling])
    assert pulling.cancelled()
    monkeypatch.undo()
    again = await pull(session)
    assert payloads(again) == [b"1", b"2"]
    assert [delivery.attempts for delivery in again.deliveries] == [()]


# --- how much is open -------------------------------------------------------------------------------------------------


async def has_room(opened: Opened) -> int | None:
    """How much there is now."""
    asking = asyncio.create_task(opened.room())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    if asking.done():
        return asking.result()
    asking.cancel()
    return None


async def test_what_is_open_is_counted_until_it_is_answered_for(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"%d" % number for number in range(10)])
    opened = Opened("billing", 6)
    assert await has_room(opened) == 6
    first, second = await pull(session, 4), await pull(session, 2)
    opened.add(first)
    assert await has_room(opened) == 2
    opened.add(second)
    assert (len(opened), await has_room(opened)) == (6, None)

    waiting = asyncio.create_task(opened.room())
    await (await session.held("orders", "billing", str(second.lease))).ack()
    assert await asyncio.wait_for(waiting, 10) == 2
    await (await session.held("orders", "billing", str(first.lease))).nack(None, delay=60, reason=None)
    assert (len(opened), await has_room(opened)) == (0, 6)
    opened.close()


async def test_what_comes_to_its_deadline_is_open_no_more(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"1", b"2"])
    opened = Opened("billing", 2)
    opened.add(await pull(session))
    running.clock.pass_seconds(31)
    await until(lambda: len(opened) == 0)
    opened.close()


async def test_what_others_settle_or_drop_is_open_no_more(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"1", b"2"])
    opened = Opened("billing", 2)
    opened.add(await pull(session))
    await running.lane.advance("orders", "billing", {0: 1})
    assert len(opened) == 1
    await running.lane.seek("orders", "billing", "latest")
    assert len(opened) == 0
    opened.close()


async def test_leases_of_others_are_not_counted(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"%d" % number for number in range(10)])
    opened = Opened("billing", 5)
    opened.add(await pull(session, 3))
    other = await pull(session, 3)
    assert len(opened) == 3
    await (await session.held("orders", "billing", str(other.lease))).ack()
    assert len(opened) == 3
    opened.close()


async def test_after_the_end_of_a_subscription_or_topic_there_is_no_room_any_more(
    running: Running, session: Session
) -> None:
    await running.lane.publish_many("orders", [b"1"])
    opened = Opened("billing", 1)
    opened.add(await pull(session))
    waiting = asyncio.create_task(opened.room())
    await asyncio.sleep(0)
    await running.lane.unsubscribe("orders", "billing")
    with pytest.raises(SubscriptionNotFound):
        await asyncio.wait_for(waiting, 10)
    await running.lane.delete_topic("orders")
    with pytest.raises(TopicNotFound):
        await opened.room()
    opened.close()


async def test_whoever_closes_hears_nothing_any_more(running: Running, session: Session) -> None:
    await running.lane.publish_many("orders", [b"1"])
    opened = Opened("billing", PULL_MESSAGES_MAX)
    pulled = await pull(session)
    opened.add(pulled)
    opened.close()
    await (await session.held("orders", "billing", str(pulled.lease))).ack()
    assert len(opened) == 1
