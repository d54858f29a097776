"""What a caller wants published, and how the coordinator knows that it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sealane.delivery.events import EpochDone, Event, TransactionDone
from sealane.delivery.partition import Partition
from sealane.delivery.staging import PART_BYTES, DecisionName
from sealane.errors import InvalidArgument
from sealane.node.transactions import TransactionId, check_transaction_id


@dataclass(frozen=True, slots=True)
class Order:
    """Parts, each with the number of its batches, to be published once under `name`, in this order."""

    transaction: str
    """As the caller calls it."""
    name: DecisionName
    batches: dict[bytes, int]
    """By part."""

    @property
    def parts(self) -> list[bytes]:
        return list(self.batches)


def read_order(transaction: str, parts: Sequence[tuple[bytes, int]], epoch: int | None, domain: str) -> Order:
    """The order, checked. Raises `InvalidArgument`."""
    check_transaction_id(transaction)
    if epoch is not None and epoch < 0:
        raise InvalidArgument("epoch", f"{epoch} is not a number from 0")
    batches = dict(parts)
    if len(batches) < len(parts):
        raise InvalidArgument("parts", "one of them is named twice; name each once, with all of its batches")
    for part, count in batches.items():
        if len(part) != PART_BYTES or count < 0:
            raise InvalidArgument("parts", f"a part has {PART_BYTES} bytes and a number of batches from 0")
    return Order(transaction, (TransactionId(domain, transaction).remembered, epoch), batches)


def is_done(coordinator: Partition, name: DecisionName) -> bool:
    transaction, epoch = name
    if epoch is None:
        return coordinator.transaction_done(transaction)
    return coordinator.epoch_done(transaction, epoch)


def done(name: DecisionName, now_us: int) -> Event:
    """What the coordinator has to remember."""
    transaction, epoch = name
    return TransactionDone(transaction, now_us) if epoch is None else EpochDone(transaction, epoch, now_us)
