"""Counting costs by the batch, not by the message, and the debug log costs nothing while it is off."""

from __future__ import annotations

import logging

from sealane.delivery.backlog import Priorities
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import Acked, Granted
from sealane.delivery.subscription import Subscription
from sealane.message import Batch
from sealane.node import Delivery, Part
from sealane.node.measures import Measures
from sealane.node.witness import Witness
from tests.unit.delivery.small_queue import plain
from tests.unit.delivery.test_cost import steps


def there_and_back(witness: Witness, batch: Batch, subscription: Subscription) -> None:
    count = len(batch)
    witness.committed(batch, 0, 0.0)
    witness.happened([Granted("billing", 7, "one", (0, count), 1, 2)], subscription)
    part = Part(range(count), batch)
    witness.delivered(Delivery("default/orders", 0, "billing", 7, 2, (part,), ()), batch.nbytes, subscription)
    witness.happened([Acked("billing", 7, (0, count), 5)], subscription)


async def test_a_batch_of_fifty_thousand_takes_as_many_steps_as_one_of_fifty() -> None:
    assert not logging.getLogger("sealane.messages").isEnabledFor(logging.DEBUG)
    counts = []
    for count in (50, 5_000, 50_000):
        measures = Measures()
        witness = Witness(measures, "default/orders", 0)
        subscription = Subscription("billing", SubscriptionConfig(), 0, Priorities())
        batch = plain(count)
        assert batch.nbytes > 0  # The engine has asked for it before, and it is remembered.
        there_and_back(witness, batch, subscription)
        counts.append(steps(lambda: there_and_back(witness, batch, subscription)))  # noqa: B023
        assert measures.topic("default/orders").published == 2 * count
    assert counts[0] == counts[1] == counts[2]
    assert counts[0] < 1_000
