"""Consumers as the node sees them: how much each can take, and where its messages go."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from pyroaring import BitMap64

from sealane.delivery.config import SubscriptionConfig
from sealane.errors import SealaneError
from sealane.node.deliveries import Delivery


@dataclass(frozen=True, slots=True)
class Revocation:
    """Leased messages that are no longer the consumer's: drop them unhandled if they have not been handled yet."""

    partition: int
    lease: int
    offsets: BitMap64


@dataclass(slots=True, eq=False)
class Consumer:
    """One consumer of one subscription of a topic, on all of its partitions."""

    id: str
    deliver: Callable[[Delivery], None]
    revoke: Callable[[Revocation], None]
    closed: Callable[[SealaneError], None]
    """Told when the subscription or topic is gone: nothing will come any more."""
    bound: bool = True
    credit: int = 0
    """How many more messages it can take."""
    paused: bool = False
    """Whatever its credit: what it was sent has still to leave this machine, so it is given no more for now."""


@dataclass(slots=True, eq=False)
class Group:
    """The consumers of one subscription: shared by the topic's partitions, so that credit and exclusivity span them."""

    name: str
    config: SubscriptionConfig
    consumers: dict[str, Consumer] = field(default_factory=dict)

    def takers(self) -> list[Consumer]:
        """Those who may be granted messages now. Whoever was served goes to the back (`served`)."""
        waiting = list(self.consumers.values())
        if self.config.mode == "exclusive":
            waiting = waiting[:1]
        return [consumer for consumer in waiting if consumer.credit > 0 and not consumer.paused]

    def served(self, consumer: Consumer) -> None:
        if self.config.mode != "exclusive" and len(self.consumers) > 1 and consumer.id in self.consumers:
            self.consumers[consumer.id] = self.consumers.pop(consumer.id)
