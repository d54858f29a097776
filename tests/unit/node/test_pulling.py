"""Pulling: messages for whoever has no connection; leased to who shows the lease, until a deadline, over restarts."""

from __future__ import annotations

import asyncio
import base64
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from sealane.client.embedded import in_process
from sealane.delivery.config import Retry
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.errors import Forbidden, InvalidArgument, LeaseLost, ModeConflict, SubscriptionNotFound
from sealane.node import Node
from sealane.node.pulling.held import Held
from sealane.node.pulling.pull import PULL_MESSAGES_MAX, PULL_WAIT_SECONDS_MAX, Pulled
from sealane.node.pulling.ticket import LEASES_MAX, SECRET_BYTES, TICKET_CHARS_MAX, LeasedRun, Ticket
from sealane.node.session import Session
from sealane.node.surroundings import of_this_machine
from sealane.security.principals import ADMIN, Principal
from tests.unit.node.running_node import Running, running_node, until


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with running_node() as running:
        yield running


@pytest.fixture
def session(running: Running) -> Session:
    return Session(running.node, ADMIN)


async def pull(session: Session, *, most: int = 100, wait: float = 0.0, topic: str = "orders") -> Pulled:
    return await session.pull(topic, "billing", messages_max=most, wait_seconds=wait)


def payloads(pulled: Pulled) -> list[bytes]:
    return [payload for each in pulled.deliveries for part in each.parts for payload in part.batch.payloads()]


def ids(pulled: Pulled) -> list[UUID]:
    return [UUID(bytes=value) for each in pulled.deliveries for part in each.parts for value in part.batch.ids()]


async def held(session: Session, pulled: Pulled) -> Held:
    assert pulled.lease is not None
    return await session.held("orders", "billing", pulled.lease)


async def depth(running: Running) -> int:
    (subscription,) = (await running.lane.describe_topic("orders")).subscriptions
    return subscription.depth


# --- taking -----------------------------------------------------------------------------------------------------------


async def test_what_is_there_comes_at_once_and_is_leased(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2", b"3"])
    first = await pull(session, most=2)
    assert payloads(first) == [b"1", b"2"]
    assert payloads(await pull(session)) == [b"3"]
    assert first.deadline_us == running.clock() + 30_000_000


async def test_nothing_is_no_lease_and_no_wait_unless_it_is_asked_for(running: Running, session: Session):
    await running.lane.create_topic("orders")
    async with asyncio.timeout(5):
        pulled = await pull(session)
    assert (pulled.lease, len(pulled)) == (None, 0)


async def test_whoever_waits_has_a_message_as_soon_as_it_is_published(running: Running, session: Session):
    waiting = asyncio.create_task(pull(session, wait=60))
    await until(lambda: "default/orders" in running.node.topics and bool(running.node.topics["default/orders"].groups))
    await running.lane.publish("orders", b"1")
    async with asyncio.timeout(10):
        assert payloads(await waiting) == [b"1"]


async def test_one_pull_takes_from_all_partitions(running: Running, session: Session):
    await running.lane.create_topic("orders", partitions=4)
    for number in range(8):
        await running.lane.publish("orders", b"%d" % number, key=b"%d" % number)
    got: list[bytes] = []
    while len(got) < 8:
        pulled = await pull(session)
        got += payloads(pulled)
        await (await held(session, pulled)).ack()
    assert sorted(got) == [b"%d" % number for number in range(8)]
    assert await depth(running) == 0


async def test_a_pull_of_more_partitions_than_a_lease_can_name_leaves_the_rest_for_the_next(
    running: Running, session: Session
):
    partitions = LEASES_MAX + 40
    await running.lane.create_topic("orders", partitions=partitions)
    await asyncio.gather(*(running.lane.publish_many("orders", [b"1"]) for _ in range(partitions)))
    got = 0
    while got < partitions:
        pulled = await pull(session, most=1_000)
        assert 1 <= len(pulled.deliveries) <= LEASES_MAX
        assert len(str(pulled.lease)) <= TICKET_CHARS_MAX
        await (await held(session, pulled)).ack()
        got += len(pulled)
    assert await depth(running) == 0


def test_the_longest_ticket_fits():
    most = (1 << 63) - 1
    assert (
        len(Ticket(bytes(SECRET_BYTES), (LeasedRun(1_000, most, most, most),) * LEASES_MAX).text()) <= TICKET_CHARS_MAX
    )


async def test_whoever_gives_up_waiting_takes_nothing_with_them(running: Running, session: Session):
    waiting = asyncio.create_task(pull(session, wait=60))
    await until(lambda: "default/orders" in running.node.topics and bool(running.node.topics["default/orders"].groups))
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not running.node.topics["default/orders"].attachments
    await running.lane.publish("orders", b"1")
    assert payloads(await pull(session)) == [b"1"]


async def test_a_subscription_is_pulled_as_it_was_made(running: Running, session: Session):
    consumer = running.lane.consume("orders", "billing", mode="exclusive", lease_seconds=7, retry=Retry("fixed", 0.0))
    async with consumer:
        pass
    await running.lane.publish("orders", b"1")
    assert (await pull(session)).deadline_us == running.clock() + 7_000_000


async def test_a_broadcast_cannot_be_pulled(running: Running, session: Session):
    async with running.lane.consume("orders", "billing", mode="broadcast"):
        with pytest.raises(ModeConflict, match="broadcast"):
            await pull(session)


@pytest.mark.parametrize(
    ("most", "wait", "argument"),
    [(0, 0, "max"), (PULL_MESSAGES_MAX + 1, 0, "max"), (1, -1, "wait"), (1, PULL_WAIT_SECONDS_MAX + 1, "wait")],
)
async def test_what_can_be_asked_for_has_limits(session: Session, most: int, wait: float, argument: str):
    with pytest.raises(InvalidArgument, match=argument):
        await pull(session, most=most, wait=wait)


async def test_a_pull_needs_the_grant_and_so_does_an_answer(running: Running, session: Session):
    await running.lane.publish("orders", b"1")
    pulled = await pull(session)
    mallory = Session(running.node, Principal("mallory"))
    with pytest.raises(Forbidden):
        await pull(mallory, topic="default/orders")
    with pytest.raises(Forbidden):
        await mallory.held("default/orders", "billing", str(pulled.lease))


# --- answering --------------------------------------------------------------------------------------------------------


async def test_an_ack_settles_all_of_it_and_may_be_repeated(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2"])
    pulled = await pull(session)
    await (await held(session, pulled)).ack()
    assert await depth(running) == 0
    await (await held(session, pulled)).ack()


async def test_an_ack_of_ids_settles_those_and_may_be_repeated(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2", b"3"])
    pulled = await pull(session)
    one, two, three = ids(pulled)
    await (await held(session, pulled)).ack([one, three])
    assert await depth(running) == 1
    await (await held(session, pulled)).ack([one, two])
    assert await depth(running) == 0
    await (await held(session, pulled)).ack([one, two, three])


async def test_ids_are_found_among_messages_that_were_published_one_by_one_and_by_priority(
    running: Running, session: Session
):
    for number in range(300):
        await running.lane.publish("orders", b"%d" % number, priority=1 + number % 3)
    pulled = await pull(session, most=1_000)
    mine = ids(pulled)
    assert len(pulled.deliveries) > 1
    await (await held(session, pulled)).ack(mine[:150])
    await (await held(session, pulled)).ack(mine[100:])
    assert await depth(running) == 300 - len(mine)


async def test_an_id_of_something_else_is_refused_and_nothing_is_done(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2"])
    pulled = await pull(session)
    with pytest.raises(InvalidArgument, match="is not a message of this lease"):
        await (await held(session, pulled)).ack([ids(pulled)[0], uuid4()])
    assert await depth(running) == 2


async def test_what_is_given_back_comes_again_as_another_attempt(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2"])
    pulled = await pull(session)
    await (await held(session, pulled)).nack([ids(pulled)[1]], delay=0, reason="not now")
    running.clock.pass_seconds(0.001)
    again = await pull(session, wait=10)
    assert payloads(again) == [b"2"]
    assert [attempt for _, attempt in again.deliveries[0].attempts] == [2]
    with pytest.raises(LeaseLost, match="may come again"):
        await (await held(session, pulled)).ack(ids(pulled))
    assert await depth(running) == 2


async def test_a_lease_that_is_over_settles_nothing(running: Running, session: Session):
    await running.lane.publish("orders", b"1")
    pulled = await pull(session)
    running.clock.pass_seconds(31)
    running.node.topics["default/orders"].owners[0].ticker.arm()
    await until(lambda: not running.node.topics["default/orders"].owners[0].core.subscription("billing").leases.by_id)
    for answer in ((await held(session, pulled)).ack(), (await held(session, pulled)).extend(5)):
        with pytest.raises(LeaseLost):
            await answer
    assert await depth(running) == 1


async def test_a_lease_that_is_extended_lasts(running: Running, session: Session):
    await running.lane.publish("orders", b"1")
    pulled = await pull(session)
    assert await (await held(session, pulled)).extend(100) == running.clock() + 100_000_000
    running.clock.pass_seconds(90)
    await (await held(session, pulled)).ack()
    assert await depth(running) == 0


# --- who shows what ---------------------------------------------------------------------------------------------------


async def test_another_ones_messages_are_not_settled_by_a_guessed_lease(running: Running, session: Session):
    await running.lane.publish("orders", b"1")
    real = Ticket.read(str((await pull(session)).lease))
    guess = Ticket(bytes(SECRET_BYTES), real.leases)
    with pytest.raises(LeaseLost):
        await (await session.held("orders", "billing", guess.text())).ack()
    assert await depth(running) == 1


@pytest.mark.parametrize(
    "text",
    [
        *("", "x", "not a lease", "AAAA" * 4_000, Ticket(b"short", ()).text(), Ticket(bytes(16), ()).text()[:-4]),
        pytest.param(
            base64.urlsafe_b64encode(b"\x93\xc4\x10" + bytes(16) + b"\x90" + b"\x91" * 6_000).decode(),
            id="lists in lists without end",
        ),
    ],
)
async def test_what_is_no_lease_is_refused(running: Running, session: Session, text: str):
    await running.lane.publish("orders", b"1")
    with pytest.raises(InvalidArgument, match="lease"):
        await session.held("orders", "billing", text)


async def test_a_lease_that_was_tampered_with_costs_little_and_harms_nobody(running: Running, session: Session):
    await running.lane.publish_many("orders", [b"1", b"2"])
    real = Ticket.read(str((await pull(session, most=1)).lease))
    (run,) = real.leases
    wide = Ticket(real.secret, (LeasedRun(run.partition, run.lease + 1, 0, (1 << 63) - 2),))
    with pytest.raises(LeaseLost):
        await (await session.held("orders", "billing", wide.text())).ack()
    elsewhere = Ticket(real.secret, (LeasedRun(7, run.lease, 0, 1),))
    with pytest.raises(InvalidArgument, match="fewer partitions"):
        await session.held("orders", "billing", elsewhere.text())
    assert await depth(running) == 2


async def test_a_lease_of_a_subscription_that_is_gone_is_told_so(running: Running, session: Session):
    await running.lane.publish("orders", b"1")
    pulled = await pull(session)
    await session.unsubscribe("orders", "billing")
    with pytest.raises(SubscriptionNotFound):
        await held(session, pulled)


# --- over restarts ----------------------------------------------------------------------------------------------------


async def test_a_lease_outlives_a_crash_of_the_node(tmp_path: Path):
    async def opened(directory: Path) -> Node:
        here = of_this_machine()
        engine = await LocalEngine.start(
            DiskFiles(directory), settings=StorageSettings(), clock=here.clock, entropy=here.entropy
        )
        return await Node.open(engine, here)

    node = await opened(tmp_path / "node")
    async with in_process(node) as lane:
        await lane.publish_many("orders", [b"1", b"2"])
    pulled = await pull(Session(node, ADMIN), most=1)
    shutil.copytree(tmp_path / "node", tmp_path / "crashed")  # As the disk is in this moment.
    await node.close()

    node = await opened(tmp_path / "crashed")
    session = Session(node, ADMIN)
    assert payloads(await pull(session)) == [b"2"]
    await (await held(session, pulled)).ack(ids(pulled))
    (subscription,) = (await session.describe_topic("orders")).subscriptions
    assert subscription.depth == 1
    await node.close()
