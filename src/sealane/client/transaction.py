"""A transaction as a caller writes it: publishes and acks, gathered, and committed when the block ends well."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Self
from uuid import UUID

from pyroaring import BitMap64

from sealane.client.broker import Hold
from sealane.client.message import LeasedBatch, LeasedMessage
from sealane.errors import Closed
from sealane.message import Batch

if TYPE_CHECKING:
    from sealane.client.lane import Lane
    from sealane.client.sealing import SealFor


class Transaction:
    """Visible together, once under its id. If the block raises, nothing happens.

    `replayed` tells, after the block, that this id had been committed before and nothing was done now.
    """

    def __init__(self, lane: Lane, transaction: str) -> None:
        self._lane = lane
        self._id = transaction
        self._publishes: list[tuple[str, Batch]] = []
        self._acks: dict[tuple[Hold, int, int], BitMap64] = {}
        self._open = False
        self.replayed = False

    async def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        priority: int = 5,
        ttl: float | None = None,
        delay: float = 0,
        id: UUID | str | bytes | None = None,
        seal_for: SealFor | None = None,
    ) -> None:
        """Publish with the others, when the transaction commits. A message that breaks a limit is refused here."""
        self._check_open()
        row = self._lane.outgoing.row(payload, key=key, headers=headers, priority=priority, ttl=ttl, delay=delay, id=id)
        outgoing = await self._lane.outgoing_for(seal_for, topic)
        self._publishes.append((topic, outgoing.build([row])))

    async def publish_many(self, topic: str, payloads: Sequence[bytes], *, seal_for: SealFor | None = None) -> None:
        self._check_open()
        outgoing = await self._lane.outgoing_for(seal_for, topic)
        self._publishes.extend((topic, batch) for batch in outgoing.batches(payloads))

    async def ack(self, message: LeasedMessage | LeasedBatch) -> None:
        """Acknowledge with the others, when the transaction commits."""
        self._check_open()
        hold, partition, lease, offsets = message.lease()
        acks = self._acks.setdefault((hold, partition, lease), BitMap64())
        acks |= offsets

    async def __aenter__(self) -> Self:
        self._open = True
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._open = False
        if kind is None and (self._publishes or self._acks):
            acks = [(*place, offsets) for place, offsets in self._acks.items()]
            self.replayed = not await self._lane.commit_transaction(self._id, self._publishes, acks)

    def _check_open(self) -> None:
        if not self._open:
            raise Closed(f"transaction {self._id!r} is over: use it inside its `async with` block")
