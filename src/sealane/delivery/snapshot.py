"""A partition's lasting state as bytes, so that recovery need not fold its whole past."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from sealane.delivery.attempts import Attempts
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.dying import DeadGroup
from sealane.delivery.events import FailureCause
from sealane.delivery.leases import Lease
from sealane.delivery.offsets import Packed, pack, unpack
from sealane.delivery.settled import SettledSet
from sealane.delivery.staging import StagedState
from sealane.delivery.subscription import Subscription
from sealane.errors import FormatTooNew

if TYPE_CHECKING:
    from sealane.delivery.partition import Partition

FORMAT = 2
"""Format 1 knew neither writers nor staged parts."""


class _SubscriptionState(msgspec.Struct, array_like=True):
    name: str
    config: SubscriptionConfig
    floor: int
    above: Packed
    attempts: list[Packed]
    parked: list[tuple[int, Packed]]
    dying: list[tuple[Packed, FailureCause, str | None]]
    leases: list[tuple[int, str, Packed, int]]
    """Only those that outlive a restart."""


class _PartitionState(msgspec.Struct, array_like=True):
    format: int
    end: int
    subscriptions: list[_SubscriptionState]
    producers: list[tuple[bytes, int, list[tuple[int, int, int]]]]
    ids: list[tuple[int, bytes, list[int]]]
    transactions: list[tuple[int, bytes, list[int]]]
    unplain: Packed
    addressed: list[tuple[int, int, str]]
    lost: list[tuple[int, int]]
    writers: list[tuple[bytes, int]] = []
    staged: StagedState | None = None
    """None: nothing is, and nothing was."""


_decoder = msgspec.msgpack.Decoder(_PartitionState)


def standing_of(state: bytes) -> list[tuple[str, SubscriptionConfig, int]]:
    """The subscriptions of a snapshot: how each delivers, and the offset below which it has everything behind it."""
    return [(each.name, each.config, each.floor) for each in _decoder.decode(state).subscriptions]


def dump_partition(partition: Partition) -> bytes:
    return msgspec.msgpack.encode(
        _PartitionState(
            FORMAT,
            partition.end,
            [_dump_subscription(subscription) for subscription in partition.subscriptions.values()],
            partition.producers.dump(),
            partition.ids.dump(),
            partition.transactions.dump(),
            pack(partition.unplain),
            partition.addressed,
            partition.lost,
            partition.writers.dump(),
            partition.staged.dump(),
        )
    )


def load_partition(partition: Partition, state: bytes) -> None:
    """Make an empty partition what the snapshot says."""
    found = msgspec.msgpack.decode(state, type=list)[0]
    if found > FORMAT:
        raise FormatTooNew(f"a snapshot of {partition.topic!r}", found, FORMAT)
    loaded = _decoder.decode(state)
    partition.end = loaded.end
    partition.subscriptions = {dumped.name: _load_subscription(partition, dumped) for dumped in loaded.subscriptions}
    partition.producers.load(loaded.producers)
    partition.ids.load(loaded.ids)
    partition.transactions.load(loaded.transactions)
    partition.unplain = unpack(loaded.unplain)
    partition.addressed = loaded.addressed
    partition.lost = loaded.lost
    partition.writers.load(loaded.writers)
    partition.staged.load(loaded.staged)


def _dump_subscription(subscription: Subscription) -> _SubscriptionState:
    return _SubscriptionState(
        subscription.name,
        subscription.config,
        subscription.settled.floor,
        pack(subscription.settled.above),
        [pack(level) for level in subscription.attempts.levels],
        [(due_us, pack(offsets)) for due_us, offsets in subscription.parked.items()],
        [(pack(group.offsets), group.cause, group.reason) for group in subscription.dying],
        [
            (lease.id, lease.consumer, pack(lease.offsets), lease.deadline_us)
            for lease in subscription.leases.by_id.values()
            if not lease.bound
        ],
    )


def _load_subscription(partition: Partition, dumped: _SubscriptionState) -> Subscription:
    subscription = Subscription(dumped.name, dumped.config, dumped.floor, partition.priorities)
    subscription.settled = SettledSet(dumped.floor, unpack(dumped.above))
    subscription.attempts = Attempts([unpack(level) for level in dumped.attempts])
    for due_us, offsets in dumped.parked:
        subscription.parked.add(due_us, unpack(offsets))
    for offsets, cause, reason in dumped.dying:
        subscription.dying.add(DeadGroup(unpack(offsets), cause, reason))
    for lease_id, consumer, offsets, deadline_us in dumped.leases:
        subscription.leases.add(Lease(lease_id, consumer, unpack(offsets), deadline_us, bound=False))
    return subscription
