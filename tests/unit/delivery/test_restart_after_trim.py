"""What a restart makes of messages that retention has let go."""

from __future__ import annotations

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.partition import Partition


def test_what_was_trimmed_is_not_looked_for_again_although_a_filter_had_settled_it_without_an_event():
    partition = Partition("default/orders")
    partition.subscribe("eu", SubscriptionConfig(filter="key = 'eu'"), floor=0)
    partition.recovered(start=3, end=5)
    assert partition.subscription("eu").settled.floor == 3
    assert partition.advance(partition.subscription("eu"), "eu") == 3
    assert partition.lost == []
