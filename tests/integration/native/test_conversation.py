"""What a client and a node say to each other when all is well."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import numpy as np
import pytest
import uvloop

from sealane.delivery.config import Retry
from sealane.message import BatchMeta, Limits, Row, Stamp, encode, from_payloads, from_rows
from sealane.message.codec import FRAMING_BYTES_MAX
from sealane.node import NodeSettings
from sealane.wire import messages as wire
from tests.integration.native.conftest import Running, eventually, running_node
from tests.integration.native.peer import STAMP, Peer, batch_of, payloads_of


async def test_a_client_is_welcomed_and_told_what_the_node_takes(running: Running) -> None:
    async with await Peer.connect(running.address) as peer:
        peer.say(wire.Hello([1, 7], "someone/1"))
        welcome = await peer.hear(wire.Welcome)

        assert (welcome.version, welcome.node, welcome.software) == (1, "node-1", "sealane/test")
        assert (welcome.principal, welcome.domain) == ("admin", "default")
        assert welcome.limits.limits() == running.node.settings.limits
        assert welcome.heartbeat_seconds == 15.0


async def test_messages_go_in_come_out_and_are_settled(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        published = await peer.publish("orders", b"a", b"b", b"c")
        assert published.shares == [wire.PlacedShare(0, 0, 3)]

        attached = await peer.attach("orders", credit=10)
        assert attached.positions == {0: 0}
        deliver, body = await peer.hear_with_body(wire.Deliver)
        assert (deliver.consumer, deliver.topic, deliver.partition) == (1, "default/orders", 0)
        assert payloads_of(deliver, body) == [b"a", b"b", b"c"]

        peer.say(wire.Settle(1, [wire.LeaseRuns(0, deliver.lease, [0, 2])]))
        answer = await peer.ask(wire.Ack, 1, wire.LeaseRuns(0, deliver.lease, [2, 3]))
        assert isinstance(answer, wire.Done)
        described = await peer.ask(wire.DescribeTopic, "orders")
        assert described["subscriptions"][0]["depth"] == 0
        assert isinstance(await peer.ask(wire.Detach, 1), wire.Done)
        assert running.door.consumers == 0


async def test_the_messages_of_a_batch_are_told_where_each_of_them_is(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        assert isinstance(await peer.ask(wire.CreateTopic, "orders", {"partitions": 4}), wire.Done)
        rows = [Row(payload=b"%d" % i, key=b"%d" % (i % 7)) for i in range(50)]
        batch = from_rows(rows, STAMP, limits=Limits())
        published = await peer.ask(wire.Publish, "orders", body=encode(batch))

        places = {}
        for share in published.shares:
            assert share.rows is not None
            chosen = np.frombuffer(share.rows, "<u4")
            assert (share.first, share.count, share.offsets) == (0, len(chosen), None)
            places.update({int(row): (share.partition, offset) for offset, row in enumerate(chosen)})
        assert sorted(places) == list(range(50))
        for row, (partition, offset) in places.items():
            browsed = await peer.ask_with_body(wire.Browse, "orders", partition, offset)
            assert payloads_of(*browsed)[offset] == rows[row].payload


async def test_repeated_ids_are_told_the_places_of_the_first(running: Running) -> None:
    def given(*numbers: int) -> bytes:
        rows = [Row(payload=b"x", id=bytes([number]) * 16) for number in numbers]
        return encode(from_rows(rows, STAMP, limits=Limits()))

    async with await Peer.enter(running.address) as peer:
        await peer.ask(wire.Publish, "orders", body=given(1, 2, 3))
        again = await peer.ask(wire.Publish, "orders", body=given(9, 3, 1))

        (share,) = again.shares
        assert list(np.frombuffer(share.offsets, "<i8")) == [3, 2, 0]


async def test_a_nack_brings_a_message_again_and_says_which_attempt_it_is(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=10, retry=Retry("fixed", 0.0))
        first = await peer.hear(wire.Deliver)
        peer.say(wire.Nack(0, 1, wire.LeaseRuns(0, first.lease, [1, 2]), None, "not today"))
        second, body = await peer.hear_with_body(wire.Deliver)

        assert payloads_of(second, body) == [b"b"]
        assert second.attempts == [([1, 2], 2)]
        answer = await peer.ask(wire.Nack, 1, wire.LeaseRuns(0, second.lease), 3600.0)
        assert isinstance(answer, wire.Done)
        described = await peer.ask(wire.DescribeTopic, "orders")
        assert described["subscriptions"][0]["waiting"] == 1


async def test_a_lease_is_extended_released_and_left(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as other:
        await peer.publish("orders", b"a", b"b", b"c")
        await peer.attach("orders", credit=10)
        first = await peer.hear(wire.Deliver)
        deadline_us = await peer.ask(wire.Extend, 1, wire.LeaseRuns(0, first.lease), 3600.0)
        assert deadline_us > first.deadline_us + 3_000_000_000

        await other.attach("orders", credit=10)
        peer.say(wire.Leave(1, [wire.LeaseRuns(0, first.lease, [1, 3])]))
        deliver, body = await other.hear_with_body(wire.Deliver)
        assert payloads_of(deliver, body) == [b"b", b"c"]
        assert deliver.attempts == []
        assert isinstance(await peer.ask(wire.Ack, 1, wire.LeaseRuns(0, first.lease, [0, 1])), wire.Done)
        other.say(wire.Release(1, [wire.LeaseRuns(0, deliver.lease)]))
        again, body = await other.hear_with_body(wire.Deliver)
        assert payloads_of(again, body) == [b"b", b"c"]


async def test_a_broadcast_consumer_is_told_where_it_begins_and_may_begin_there_again(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("news", b"a", b"b", b"c")
        attached = await peer.attach("news", "all", mode="broadcast", start="latest")
        assert attached.positions == {0: 3}
        resumed = await peer.attach("news", "all", consumer=2, mode="broadcast", start={0: 1}, credit=9)
        assert resumed.positions == {0: 1}
        deliver, body = await peer.hear_with_body(wire.Deliver)
        assert (deliver.consumer, payloads_of(deliver, body)) == (2, [b"b", b"c"])


async def test_a_consumer_begins_at_a_moment(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        for moment in (1_000_000, 2_000_000, 3_000_000):
            batch = batch_of(b"%d" % moment, stamp=Stamp(moment, bytes(16)))
            await peer.ask(wire.Publish, "orders", body=batch)
        await peer.attach("orders", credit=10, start=1_500_000)
        deliver, body = await peer.hear_with_body(wire.Deliver)
        assert payloads_of(deliver, body) == [b"2000000", b"3000000"]


async def test_topics_and_subscriptions_are_managed(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.ask(wire.CreateTopic, "shop/orders", {"partitions": 2})
        await peer.ask(wire.ConfigureTopic, "shop/orders", {"partitions": 3, "retention_seconds": 60.0})
        described = await peer.ask(wire.DescribeTopic, "shop/orders")
        assert described["config"]["retention_seconds"] == 60.0
        assert len(described["partitions"]) == 3
        await peer.attach("shop/orders")
        assert await peer.ask(wire.ListTopics) == ["shop/orders"]
        assert await peer.ask(wire.Seek, "shop/orders", "workers", "latest") == {0: 0, 1: 0, 2: 0}

        assert isinstance(await peer.ask(wire.Unsubscribe, "shop/orders", "workers"), wire.Done)
        ended = await peer.hear(wire.Ended)
        assert (ended.consumer, ended.code) == (1, "subscription-not-found")
        await peer.ask(wire.DeleteTopic, "shop/orders")
        refused = await peer.ask(wire.DescribeTopic, "shop/orders")
        assert (refused.code, refused.fields["name"]) == ("topic-not-found", "shop/orders")


async def test_a_routing_key_leads_to_topics(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.ask(wire.DeclareExchange, "events", "topic")
        await peer.ask(wire.Bind, "events", "eu", "order.eu.#")
        await peer.ask(wire.Bind, "events", "all", "#")
        routed = await peer.ask(wire.PublishTo, "events", "order.eu.1", body=batch_of(b"x"))
        assert routed.topics == {
            "default/eu": [wire.PlacedShare(0, 0, 1)],
            "default/all": [wire.PlacedShare(0, 0, 1)],
        }
        await peer.ask(wire.Unbind, "events", "all", "#")
        bindings = [["order.eu.#", "default/eu"]]
        assert await peer.ask(wire.ListExchanges) == {"default/events": ["topic", bindings]}
        refused = await peer.ask(wire.PublishTo, "events", "other", body=batch_of(b"x"))
        assert refused.code == "unroutable"


async def test_dead_letters_are_driven_back_with_word_of_how_far_it_is(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a", b"b")
        await peer.attach("orders", credit=10, retry=Retry("fixed", 0.0, attempts_max=1))
        deliver = await peer.hear(wire.Deliver)
        await peer.ask(wire.Nack, 1, wire.LeaseRuns(0, deliver.lease), None, "broken")

        async def buried() -> bool:
            return "default/orders.workers.dead" in await peer.ask(wire.ListTopics)

        await eventually(buried)
        assert await peer.ask(wire.Redrive, "orders", "workers", None, True) == [True, 2, {"broken": 2}]
        second = (None, True, None, None, {0: [1, 2]})
        assert await peer.ask(wire.Redrive, "orders", "workers", *second) == [True, 1, {"broken": 1}]
        assert await peer.ask(wire.Redrive, "orders", "workers") == [False, 2, {"broken": 2}]
        progress = [message.done for message, _ in peer.heard if isinstance(message, wire.Progress)]
        assert progress == [2, 1, 2]
        _, body = await peer.hear_with_body(wire.Deliver)
        assert len(body)


async def test_a_transaction_names_consumers_of_its_own_and_of_other_connections(running: Running) -> None:
    async with await Peer.enter(running.address) as peer, await Peer.enter(running.address) as consumer:
        await peer.publish("orders", b"a", b"b")
        await consumer.attach("orders", identity="me", credit=10)
        deliver = await consumer.hear(wire.Deliver)
        batches = [batch_of(b"invoice"), batch_of(b"mail", b"mail")]
        publishes = [("invoices", len(batches[0])), ("mails", len(batches[1]))]
        acks = [("me", wire.LeaseRuns(0, deliver.lease))]
        assert await peer.ask(wire.Transact, "t-1", publishes, acks, body=batches) is True
        assert await peer.ask(wire.Transact, "t-1", publishes, [], body=batches) is False
        lost = await peer.ask(wire.Transact, "t-2", publishes, [("me", wire.LeaseRuns(0, 77, [0, 1]))], body=batches)
        assert lost.code == "transaction-aborted"
        nobody = await peer.ask(wire.Transact, "t-3", publishes, [("you", wire.LeaseRuns(0, 77))], body=batches)
        assert (nobody.code, nobody.fields["cause"][0]) == ("transaction-aborted", "closed")

        described = await peer.ask(wire.DescribeTopic, "mails")
        assert described["partitions"][0]["end"] == 2
        orders = await peer.ask(wire.DescribeTopic, "orders")
        assert orders["subscriptions"][0]["depth"] == 0


async def test_the_raw_log_is_read_a_piece_at_a_time(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        for number in range(5):
            await peer.publish("orders", *[b"%d" % number * 50_000] * 10)
        read, offset = [], 0
        while True:
            browsed, body = await peer.ask_with_body(wire.Browse, "orders", 0, offset, 1)
            if not browsed.parts:
                break
            read += payloads_of(browsed, body)
            offset = browsed.parts[-1][0] + browsed.parts[-1][1]
        assert [payload[:1] for payload in read] == [b"%d" % number for number in range(5) for _ in range(10)]


async def test_a_reader_hears_what_there_is_and_says_how_far_it_has_come(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        for number in range(3):
            await peer.publish("orders", b"%d" % number, b"more")
        ((name, incarnation, partitions),) = await peer.ask(wire.DescribeLogs, ["orders", "ord*"])
        assert (name, partitions) == ("default/orders", [[0, 0, 6, None, 0, 0]])
        browsed, body = await peer.ask_with_body(wire.Browse, "orders", 0, 2, 1 << 20, incarnation, 3)
        assert payloads_of(browsed, body) == [b"1", b"more"]
        assert isinstance(await peer.ask(wire.Advance, "orders", "reader", {0: 4}), wire.Done)
        (shown,) = (await peer.ask(wire.DescribeTopic, "orders"))["subscriptions"]
        assert (shown["depth"], shown["positions"]) == (2, {0: 4})


async def test_a_reader_is_told_where_a_moment_is(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a")
        for at_us, at in ((STAMP.created_us, 0), (STAMP.created_us + 1, 1)):
            ((_, _, partitions),) = await peer.ask(wire.DescribeLogs, ["orders"], at_us)
            assert partitions == [[0, 0, 1, at, 0, 0]]


async def test_a_reader_of_a_topic_that_was_made_again_is_told_so(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"old")
        ((_, before, _),) = await peer.ask(wire.DescribeLogs, ["orders"])
        await peer.ask(wire.DeleteTopic, "orders")
        await peer.publish("orders", b"new")
        ((_, now, _),) = await peer.ask(wire.DescribeLogs, ["orders"])
        refused = await peer.ask(wire.Browse, "orders", 0, 0, 1 << 20, before)
        assert refused.code == "topic-not-found"
        assert f"{before} was asked for, this one is {now}" in refused.text
        browsed, body = await peer.ask_with_body(wire.Browse, "orders", 0, 0, 1 << 20, now)
        assert payloads_of(browsed, body) == [b"new"]


async def test_what_is_staged_is_seen_when_it_is_published_and_once(running: Running) -> None:
    part = bytes(range(16))

    def staged(sequence: int) -> bytes:
        batch = from_payloads([b"%d" % sequence], STAMP, limits=Limits())
        return encode(batch.with_meta(BatchMeta(producer=part, sequence=sequence)))

    async def seen(peer: Peer) -> list[bytes]:
        return payloads_of(*await peer.ask_with_body(wire.Browse, "orders", 0, 0))

    async with await Peer.enter(running.address) as peer:
        await peer.ask(wire.CreateTopic, "orders", {})
        for sequence in (0, 1, 1):
            answer = await peer.ask(wire.Stage, "orders", body=staged(sequence))
            assert isinstance(answer, wire.Done), answer
        assert await seen(peer) == []
        assert await peer.ask(wire.PublishStaged, "writer", [(part, 2)], 7) is True
        assert await seen(peer) == [b"0", b"1"]
        assert await peer.ask(wire.PublishStaged, "writer", [(part, 2)], 7) is False
        other = await peer.ask(wire.DropStaged, [part, b"unknown"])
        assert isinstance(other, wire.Done), other
        assert await seen(peer) == [b"0", b"1"]


async def test_a_lease_too_large_for_one_frame_comes_in_several(no_stray_errors: None) -> None:
    limits = Limits(payload_bytes_max=100_000, batch_bytes_max=200_000)
    settings = NodeSettings(limits=limits, delivery_bytes_max=5_000_000)
    async with running_node(node_settings=settings) as running, await Peer.enter(running.address) as peer:
        for _ in range(30):
            await peer.publish("orders", *[b"x" * 90_000] * 2)
        await peer.attach("orders", credit=1_000)
        frames: list[wire.Deliver] = []
        while sum(part[1] for deliver in frames for part in deliver.parts) < 60:
            deliver, body = await peer.hear_with_body(wire.Deliver)
            assert len(body) <= limits.batch_bytes_max + FRAMING_BYTES_MAX
            frames.append(deliver)
        assert len({deliver.lease for deliver in frames}) < len(frames)
        offsets = [part[0] for deliver in frames for part in deliver.parts]
        assert offsets == sorted(offsets)


async def test_batches_of_one_topic_are_stored_in_the_order_in_which_they_were_sent(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        calls = []
        for number in range(200):
            calls.append(peer.wire.new_call())
            peer.say(wire.Publish(calls[-1], "orders"), batch_of(b"%d" % number))
        answers = [await peer.answer(call) for call in calls]
        assert [answer.shares[0].first for answer in answers] == list(range(200))


async def test_what_nobody_waits_for_is_not_answered(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        peer.say(wire.Publish(0, "orders"), batch_of(b"x"))
        peer.say(wire.CreateTopic(0, "more", {}))
        peer.say(wire.CreateTopic(0, "not a name", {}))
        await eventually(lambda: {"default/orders", "default/more"} <= set(running.node.topics))
        await peer.publish("orders", b"y")
        assert peer.heard == []


@pytest.mark.parametrize("loop_factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_it_works_on_either_event_loop(loop_factory: Callable[[], asyncio.AbstractEventLoop]) -> None:
    async def conversation() -> None:
        async with running_node() as running, await Peer.enter(running.address) as peer:
            payloads = [b"%d" % number * 300 for number in range(5_000)]
            await peer.publish("orders", *payloads)
            await peer.attach("orders", credit=10_000)
            read: list[bytes] = []
            while len(read) < len(payloads):
                read += payloads_of(*await peer.hear_with_body(wire.Deliver))
            assert read == payloads

    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(conversation())
