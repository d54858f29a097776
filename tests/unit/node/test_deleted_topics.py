"""A topic may be deleted between the moment in which it was looked up and the moment in which it is used."""

from __future__ import annotations

import pytest

import sealane
from sealane.delivery.config import SubscriptionConfig
from sealane.engine.memory import MemoryEngine
from sealane.message import Limits, Stamp, from_payloads
from sealane.node import Node
from sealane.node.publishing import start_publish
from sealane.node.surroundings import of_this_machine


async def test_whoever_still_holds_a_deleted_topic_is_told_so() -> None:
    surroundings = of_this_machine()
    node = await Node.open(MemoryEngine(surroundings.clock), surroundings)
    topic = await node.ensure_topic("orders")
    await node.delete_topic("orders")
    batch = from_payloads([b"x"], Stamp(1, bytes(16)), limits=Limits())
    with pytest.raises(sealane.TopicNotFound):
        start_publish([(topic, batch)])
    with pytest.raises(sealane.TopicNotFound):
        await node.subscribe(topic, "workers", SubscriptionConfig(), "earliest")
    await node.close()
