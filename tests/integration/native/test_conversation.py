"""What a client and a node say to each other when all is well."""

from __future__ import annotations

from sealane.wire import messages as wire
from tests.integration.native.conftest import Running
from tests.integration.native.peer import Peer, payloads_of


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
