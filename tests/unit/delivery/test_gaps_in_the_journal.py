"""What a restart makes of messages of which the journal does not tell everything."""

from __future__ import annotations

from sealane.delivery.config import Retry, SubscriptionConfig
from sealane.delivery.events import Failed
from sealane.delivery.offsets import pack, span
from sealane.delivery.partition import Partition


def test_what_was_trimmed_is_not_looked_for_again_although_a_filter_had_settled_it_without_an_event():
    partition = Partition("default/orders")
    partition.subscribe("eu", SubscriptionConfig(filter="key = 'eu'"), floor=0)
    partition.recovered(start=3, end=5)
    assert partition.subscription("eu").settled.floor == 3
    assert partition.advance(partition.subscription("eu"), "eu") == 3
    assert partition.lost == []


def test_a_message_that_dies_is_not_kept_for_a_retry_although_its_last_grant_is_not_in_the_journal():
    partition = Partition("default/orders")
    config = SubscriptionConfig(retry=Retry(kind="fixed", delay_seconds=1, attempts_max=2))
    partition.subscribe("billing", config, floor=0)
    partition.recovered(start=0, end=1)
    subscription = partition.subscription("billing")
    for time_us in (0, 1):
        subscription.apply(Failed("billing", 7, pack(span(0, 1)), time_us, time_us + 1_000_000, "nack", None))
    subscription.tick(5_000_000)
    subscription.check(partition.visible)
    assert list(subscription.dying.members) == [0]
    assert not subscription.backlog.has_ready("ann")
