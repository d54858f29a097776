"""What happens to a topic's subscriptions: made, configured anew, set back or forward, deleted.

Each is durable on return and touches all partitions in one commit.
"""

from __future__ import annotations

import asyncio

import msgspec

from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.events import Configured, Sought, Subscribed, Unsubscribed
from sealane.errors import ModeConflict, SubscriptionNotFound
from sealane.log import get_log
from sealane.node.commits import commit_together, stage
from sealane.node.consumers import Group
from sealane.node.starts import Start, offset_of
from sealane.node.topics import Topic

log = get_log("sealane.node")


async def subscribe(topic: Topic, name: str, config: SubscriptionConfig, start: Start, *, keep_retry: bool) -> Group:
    """See `Node.subscribe`, which sees to it that one at a time is under way for a name."""
    topic.check()
    group = topic.groups.get(name)
    if group is None:
        existing = topic.owners[0].core.subscriptions.get(name)
        group = topic.groups[name] = Group(name, existing.config if existing else config)
    if keep_retry:
        config = msgspec.structs.replace(config, retry=group.config.retry)
    if config.mode != group.config.mode:
        raise ModeConflict(name, f"its mode is {group.config.mode}, not {config.mode}")
    missing = [owner for owner in topic.owners if name not in owner.core.subscriptions]
    if missing and config.mode != "broadcast":
        floors = [await offset_of(start, owner) for owner in missing]
        events = [Subscribed(name, config, floor) for floor in floors]
        shares = [stage(owner, planned=[event]) for owner, event in zip(missing, events, strict=True)]
        await asyncio.shield(commit_together(topic.engine, shares))
        log.info("a subscription was created", topic=topic.full_name, subscription=name, mode=config.mode)
    if config != group.config:
        await _reconfigure(topic, group, config)
    return group


async def _reconfigure(topic: Topic, group: Group, config: SubscriptionConfig) -> None:
    if config.filter != group.config.filter:
        wanted, has = config.filter, group.config.filter
        raise ModeConflict(group.name, f"its filter is {has!r}, not {wanted!r}; delete it or use another name")
    group.config = config
    if config.mode != "broadcast":
        shares = [stage(owner, planned=[Configured(group.name, config)]) for owner in topic.owners]
        await asyncio.shield(commit_together(topic.engine, shares))


async def unsubscribe(topic: Topic, subscription: str) -> None:
    """Its consumers are told, and its position is gone."""
    owners = [owner for owner in topic.owners if subscription in owner.core.subscriptions]
    if not owners and subscription not in topic.groups:
        raise SubscriptionNotFound(f"{topic.full_name}:{subscription}")
    for attachment in [held for held in topic.attachments.values() if held.group.name == subscription]:
        attachment.consumer.closed(SubscriptionNotFound(f"{topic.full_name}:{subscription}", "it was deleted"))
        await attachment.detach()
    topic.groups.pop(subscription, None)
    if owners:
        shares = [stage(owner, planned=[Unsubscribed(subscription)]) for owner in owners]
        await asyncio.shield(commit_together(topic.engine, shares))


async def seek(topic: Topic, subscription: str, start: Start) -> dict[int, int]:
    """Returns the new offset by partition."""
    offsets: dict[int, int] = {}
    shares = []
    for owner in topic.owners:
        owner.core.subscription(subscription)
        offsets[owner.key.partition] = await offset_of(start, owner)
    for owner in topic.owners:
        owner.revoke_all(subscription)
        offset = offsets[owner.key.partition]
        shares.append(stage(owner, planned=[Sought(subscription, offset, owner.clock())]))
    await asyncio.shield(commit_together(topic.engine, shares))
    log.info("a subscription was sought", topic=topic.full_name, subscription=subscription, offsets=offsets)
    return offsets
