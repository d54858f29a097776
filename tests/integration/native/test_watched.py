"""What happens at the native door is seen by those who watch the node."""

from __future__ import annotations

from sealane.node.status import node_status
from sealane.server.metrics import Metrics
from sealane.wire import messages as wire
from tests.integration.native.conftest import Running
from tests.integration.native.peer import Peer


async def test_what_the_door_refuses_is_counted_by_its_class(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        for _ in range(2):
            refused = await peer.ask(wire.DescribeTopic, "shop/orders")
            assert refused.code == "topic-not-found"

    assert running.node.measures.refusals == {"TopicNotFound": 2}
    text, _ = Metrics(running.node).render()
    assert b'sealane_refusals_total{error="TopicNotFound"} 2.0' in text


async def test_messages_that_come_over_the_wire_are_in_the_status(running: Running) -> None:
    async with await Peer.enter(running.address) as peer:
        await peer.publish("orders", b"a", b"b", b"c")

        status = node_status(running.node)

    assert (status.published_total, status.messages_total) == (3, 3)
    assert status.topics[0].name == "default/orders"
