"""What becomes of consumers and their leases when connections, and others, come and go."""

from __future__ import annotations

import pytest

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.message import Limits, Row, encode, from_payloads, from_rows
from sealane.node import NodeSettings
from sealane.wire import messages as wire
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import STAMP, Peer, payloads_of


async def test_what_a_lost_connection_held_goes_to_others_and_counts_as_an_attempt(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as other:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=10)
        await peer.hear(wire.Deliver)
        await other.attach("orders", credit=10)
        peer.writer.transport.abort()

        deliver, body = await other.hear_with_body(wire.Deliver)
        assert payloads_of(deliver, body) == [b"a", b"b"]
        assert deliver.attempts == [([0, 2], 2)]
        await eventually(lambda: running.door.consumers == 1)
        assert len(running.node.topics["default/orders"].attachments) == 1


async def test_acks_that_came_before_a_connection_ended_count(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as other:
        await peer.publish("orders", b"a", b"b", b"c")
        await peer.attach("orders", credit=10)
        deliver = await peer.hear(wire.Deliver)
        peer.say(wire.Settle(1, [wire.LeaseRuns(0, deliver.lease, [0, 2])]))
        peer.say(wire.Goodbye("closed", "done"))
        await peer.gone()

        await other.attach("orders", credit=10)
        again, body = await other.hear_with_body(wire.Deliver)
        assert payloads_of(again, body) == [b"c"]


async def test_an_identity_that_comes_again_takes_over_from_a_connection_that_hangs(running: Running) -> None:
    async with await Peer.enter(running.address) as hanging, await Peer.enter(running.address) as again:
        await again.publish("orders", b"a")
        await hanging.attach("orders", identity="me", credit=10)
        await hanging.hear(wire.Deliver)

        assert isinstance(await again.attach("orders", identity="me", credit=10), wire.Attached)
        _, body = await again.hear_with_body(wire.Deliver)
        assert len(body)
        ended = await hanging.hear(wire.Ended)
        assert (ended.consumer, ended.code) == (1, "closed")
        assert running.door.consumers == 1


async def test_nobody_answers_for_a_lease_that_is_another_s(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as thief:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=10)
        deliver = await peer.hear(wire.Deliver)
        await thief.attach("orders")
        whole = wire.LeaseRuns(0, deliver.lease)
        some = wire.LeaseRuns(0, deliver.lease, [0, 1])
        thief.say(wire.Settle(1, [whole]))
        thief.say(wire.Release(1, [whole]))
        thief.say(wire.Leave(1, [some]))
        for request in (wire.Ack, wire.Nack):
            assert (await thief.ask(request, 1, whole)).code == "lease-lost"
            assert (await thief.ask(request, 1, some)).code == "lease-lost"
        assert (await thief.ask(wire.Extend, 1, whole, 5.0)).code == "lease-lost"
        transacted = await thief.ask(wire.Transact, "t", [], [(f"{id(thief)}-1", some)])
        assert transacted.code == "transaction-aborted"

        described = await peer.ask(wire.DescribeTopic, "orders")
        assert (described["subscriptions"][0]["leased"], described["subscriptions"][0]["depth"]) == (2, 2)
        assert isinstance(await peer.ask(wire.Ack, 1, whole), wire.Done)


async def test_only_the_one_who_held_a_lease_is_told_that_it_ended(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as other:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=1)
        first = await peer.hear(wire.Deliver)
        await other.attach("orders", credit=1)
        await other.hear(wire.Deliver)
        await peer.ask(wire.Seek, "orders", "workers", "latest")
        revoked = await peer.hear(wire.Revoke)
        assert (revoked.consumer, revoked.lease, revoked.runs) == (1, first.lease, [0, 1])
        await other.hear(wire.Revoke)
        assert not any(isinstance(message, wire.Revoke) for message, _ in [*peer.heard, *other.heard])


async def test_credit_and_a_leave_may_come_before_the_consumer_is_attached(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", *[b"x"] * 10)
        attach = wire.Attach(peer.wire.new_call(), 1, "one", "orders", "workers", SubscriptionConfig())
        peer.say(attach)
        peer.say(wire.Credit(1, 3))
        deliver = await peer.hear(wire.Deliver)
        assert sum(part[1] for part in deliver.parts) == 3

        call = peer.wire.new_call()
        peer.say(wire.Attach(call, 2, "two", "orders", "workers", SubscriptionConfig(), credit=5))
        peer.say(wire.Leave(2, []))
        peer.say(wire.Detach(peer.wire.new_call(), 2, True))
        assert isinstance(await peer.answer(call + 1), wire.Done)
        assert not any(isinstance(message, wire.Deliver) for message, _ in peer.heard)
        await eventually(lambda: running.door.consumers == 1)


async def test_a_connection_that_ends_while_it_attaches_leaves_nothing_behind(running: Running) -> None:
    await running.node.publish("orders", from_payloads([b"x"] * 100, STAMP, limits=Limits()))
    for _ in range(50):
        peer = await Peer.enter(running.address)
        for number in range(5):
            config = SubscriptionConfig()
            peer.say(wire.Attach(number + 1, number, f"{id(peer)}-{number}", "orders", "workers", config, credit=9))
        await peer.writer.drain()
        peer.writer.transport.abort()
    topic = running.node.topics["default/orders"]
    await eventually(lambda: running.door.connections == 0 and not topic.attachments)
    assert running.door.consumers == 0
    assert not topic.groups["workers"].consumers
    assert not topic.owners[0].core.subscriptions["workers"].leases.by_id


async def test_a_consumer_that_has_left_is_forgotten_when_its_last_message_is_answered(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=10)
        deliver = await peer.hear(wire.Deliver)
        await peer.ask(wire.Detach, 1)
        assert running.door.consumers == 1
        peer.say(wire.Settle(1, [wire.LeaseRuns(0, deliver.lease)]))
        topic = running.node.topics["default/orders"]
        await eventually(lambda: running.door.consumers == 0 and not topic.attachments)


async def test_messages_that_were_revoked_can_no_longer_be_acknowledged(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a")
        await peer.attach("orders", credit=10, lease_seconds=0.05, retry=Retry("fixed", 3600.0))
        deliver = await peer.hear(wire.Deliver)
        revoke = await peer.hear(wire.Revoke)
        assert (revoke.lease, revoke.runs) == (deliver.lease, [0, 1])
        assert (await peer.ask(wire.Ack, 1, wire.LeaseRuns(0, deliver.lease, [0, 1]))).code == "lease-lost"


@pytest.mark.parametrize("mode", ["queue", "exclusive", "key-shared", "broadcast"])
async def test_a_delivery_is_bounded_even_if_older_messages_are_much_larger(no_stray_errors: None, mode: str) -> None:
    settings = NodeSettings(delivery_bytes_max=1_000_000)
    async with running_node(node_settings=settings) as running, await Peer.enter(running.address) as peer:
        for number in range(30):
            rows = [Row(payload=b"%d" % number * 100_000, key=b"%d" % (number % 3)) for _ in range(2)]
            await peer.ask(wire.Publish, "orders", body=encode(from_rows(rows, STAMP, limits=Limits())))
        await peer.publish("orders", b"tiny")  # By this one the others are judged.
        await peer.attach("orders", "s", credit=61, mode=mode)
        offsets: list[int] = []
        while len(offsets) < 61:
            deliver, body = await peer.hear_with_body(wire.Deliver)
            assert len(body) < 1_500_000
            assert deliver.attempts == []
            offsets += [part[0] + each for part in deliver.parts for each in range(part[1])]
        assert offsets == list(range(61))
        assert not any(isinstance(message, wire.Revoke) for message, _ in peer.heard)
        if mode != "broadcast":
            described = await peer.ask(wire.DescribeTopic, "orders")
            assert described["subscriptions"][0]["leased"] == 61


async def test_a_consumer_whose_topic_was_deleted_is_forgotten(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a")
        await peer.attach("orders", credit=10)
        await peer.hear(wire.Deliver)
        await peer.ask(wire.DeleteTopic, "orders")
        assert (await peer.hear(wire.Ended)).code == "topic-not-found"
        await eventually(lambda: running.door.consumers == 0)
        assert isinstance(await peer.attach("orders"), wire.Attached), "its number is free again"
