"""A topic's configuration: what a user may say about it, checked, and as it is stored."""

from __future__ import annotations

import math
from typing import Literal, get_args

import msgspec

from sealane.delivery.limits import DeliveryLimits
from sealane.errors import InvalidArgument

PARTITIONS_MAX = 1_024
"""Each partition is a log of its own; beyond this one node spends more on bookkeeping than on messages."""

WhenFull = Literal["refuse", "drop-oldest"]


class TopicConfig(msgspec.Struct, frozen=True, kw_only=True):
    partitions: int = 1
    durable: bool = True
    """False: kept in memory only, gone with the process."""
    sealed: bool = True
    retention_seconds: float = 7 * 24 * 3600.0
    messages_max: int | None = None
    """Unsettled messages a partition may hold for its slowest subscription."""
    when_full: WhenFull = "refuse"
    id_window_seconds: float = 600.0
    id_window_ids_max: int = 1_000_000

    def limits(self) -> DeliveryLimits:
        return DeliveryLimits(
            messages_max=self.messages_max,
            when_full=self.when_full,
            id_window_seconds=self.id_window_seconds,
            id_window_ids_max=self.id_window_ids_max,
        )


FIXED_FIELDS = ("durable", "sealed")
"""Decided when the topic is created: changing them would mean rewriting what is stored."""


def check_topic_config(config: TopicConfig) -> None:
    """Refuse what cannot work, naming the argument."""
    if not 1 <= config.partitions <= PARTITIONS_MAX:
        raise InvalidArgument("partitions", f"{config.partitions} is not in 1 to {PARTITIONS_MAX}")
    if not 0 <= config.retention_seconds < math.inf:
        raise InvalidArgument("retention_seconds", f"{config.retention_seconds} is not a number of seconds from 0")
    if config.messages_max is not None and config.messages_max < 1:
        raise InvalidArgument("messages_max", f"{config.messages_max} is not at least 1; leave it out for no limit")
    if config.when_full not in get_args(WhenFull):
        raise InvalidArgument("when_full", f"{config.when_full!r} is not one of {', '.join(get_args(WhenFull))}")
    if not 0 <= config.id_window_seconds < math.inf or config.id_window_ids_max < 0:
        raise InvalidArgument("id_window", "seconds and ids_max must be at least 0")


def changed_config(current: TopicConfig, changes: dict[str, object]) -> TopicConfig:
    """The configuration with changes applied; refuses unknown names, fixed fields and fewer partitions."""
    for name, value in changes.items():
        if name not in TopicConfig.__struct_fields__:
            known = ", ".join(TopicConfig.__struct_fields__)
            raise InvalidArgument(name, f"is not a setting of a topic; there are {known}")
        if name in FIXED_FIELDS and getattr(current, name) != value:
            raise InvalidArgument(name, "is decided when a topic is created; create another one and move the messages")
    try:
        config = msgspec.convert({**msgspec.to_builtins(current), **changes}, TopicConfig)
    except msgspec.ValidationError as error:
        raise InvalidArgument("topic configuration", str(error)) from None
    if config.partitions < current.partitions:
        raise InvalidArgument("partitions", f"{config.partitions} is fewer than the {current.partitions} there are")
    check_topic_config(config)
    return config
