"""Readers that keep their own position, as Spark does, say here how far they have come.

Their subscription is one like any other: the node shows how far behind it is, and keeps what it has not passed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import Advanced, Subscribed
from sealane.delivery.offsets import span
from sealane.errors import InvalidArgument, ModeConflict
from sealane.log import get_log
from sealane.node.commits import Staged, commit_together, stage
from sealane.node.owner import PartitionOwner
from sealane.node.topics import Topic

log = get_log("sealane.node")


async def advance(topic: Topic, subscription: str, positions: Mapping[int, int]) -> None:
    """Settle everything below these offsets, by partition, in one commit: durable on return.

    Where the subscription is new it is made, and begins there, or at the start of a partition that is not named.
    """
    _check(topic, positions)
    config = _config_of(topic, subscription)
    shares: list[Staged] = []
    unchanged: list[PartitionOwner] = []
    is_new = all(subscription not in owner.core.subscriptions for owner in topic.owners)
    for owner in topic.owners:
        position = positions.get(owner.key.partition)
        if subscription not in owner.core.subscriptions:
            shares.append(stage(owner, planned=[Subscribed(subscription, config, _floor(owner, position))]))
        elif position is None or position <= owner.core.subscriptions[subscription].settled.floor:
            unchanged.append(owner)
        else:
            _take_back(owner, subscription, position)
            shares.append(stage(owner, planned=[Advanced(subscription, position, owner.clock())]))
    if shares:
        await asyncio.shield(commit_together(topic.engine, shares))
    for owner in unchanged:
        await owner.flush()  # What has moved it there already may be on its way to the disk.
    if is_new:
        log.info("a subscription was created", topic=topic.full_name, subscription=subscription, mode=config.mode)


def _check(topic: Topic, positions: Mapping[int, int]) -> None:
    for partition, offset in positions.items():
        if not 0 <= partition < len(topic.owners):
            problem = f"{partition} is not in 0 to {len(topic.owners) - 1}, the partitions of {topic.full_name!r}"
            raise InvalidArgument("positions", problem)
        end = topic.owners[partition].core.visible
        if not 0 <= offset <= end:
            problem = f"{offset} is not in 0 to {end}, where partition {partition} of {topic.full_name!r} ends"
            raise InvalidArgument("positions", problem)


def _config_of(topic: Topic, subscription: str) -> SubscriptionConfig:
    group = topic.groups.get(subscription)
    existing = topic.owners[0].core.subscriptions.get(subscription)
    config = group.config if group else existing.config if existing else SubscriptionConfig()
    if config.mode == "broadcast":
        problem = "its mode is broadcast: each of its consumers has a position of its own, and it has none to advance"
        raise ModeConflict(subscription, problem)
    return config


def _floor(owner: PartitionOwner, position: int | None) -> int:
    return owner.core.start if position is None else max(position, owner.core.start)


def _take_back(owner: PartitionOwner, subscription: str, position: int) -> None:
    """Whoever holds messages below the position hears that they are settled."""
    dispatcher = owner.dispatchers.get(subscription)
    if dispatcher is None:
        return
    held = owner.core.subscriptions[subscription].leases
    below = held.outstanding & span(0, position)
    if below:
        for lease in held.by_id.values():
            if lease.offsets.intersect(below):
                dispatcher.revoke(lease.id, lease.offsets & below)
