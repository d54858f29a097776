"""The consumers of native connections: what each is in the node, and what its client says about it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from pyroaring import BitMap64

from sealane.doors.native.outgoing import Body, deliver_frames
from sealane.errors import Closed, InvalidArgument, LeaseLost, SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery
from sealane.node.session import Session
from sealane.node.starts import Start
from sealane.wire.errors import ProtocolError
from sealane.wire.faults import fault_of
from sealane.wire.messages import Attach, Ended, LeaseRuns, News, Revoke, StartPoint
from sealane.wire.runs import from_runs, to_runs

CREDIT_MESSAGES_MAX = 10_000_000
"""Messages that one consumer may ask for ahead: far more than any could hold."""
LEASES_REMEMBERED = 1_024
"""Leases are looked through for those that are over when there are this many more than at the last look."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NO_LEASE = -1

Tell = Callable[[News, Body], None]


class NativeConsumer:
    """Made when `Attach` is heard, so that what the client says next finds it; attached a little later."""

    __slots__ = (
        "_attached",
        "_body_bytes_max",
        "_credit",
        "_ended",
        "_leases",
        "_leases_looked",
        "_left",
        "_tell",
        "attachment",
        "consumer",
        "identity",
        "number",
    )

    def __init__(self, number: int, identity: str, name: str, body_bytes_max: int, tell: Tell) -> None:
        self.number = number
        self.identity = identity
        self.consumer = Consumer(name, self._deliver, self._revoke, self._closed)
        self.attachment: Attachment | None = None
        self._body_bytes_max = body_bytes_max
        self._tell = tell
        self._attached: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when `attach` is, well or not."""
        self._credit = 0
        """Given before it was attached."""
        self._left = False
        self._ended = False
        self._leases: set[tuple[int, int]] = set()
        """(partition, lease) that this consumer was handed: news of other leases are not for it."""
        self._leases_looked = 0

    # --- from the node ------------------------------------------------------------------------------------------------

    def _deliver(self, delivery: Delivery) -> None:
        self._remember(delivery.partition, delivery.lease)
        for message, body in deliver_frames(self.number, delivery, self._body_bytes_max):
            self._tell(message, body)

    def _revoke(self, revocation: Revocation) -> None:
        if (revocation.partition, revocation.lease) in self._leases:
            runs = to_runs(revocation.offsets)
            self._tell(Revoke(self.number, revocation.partition, revocation.lease, runs), [])

    def _closed(self, error: SealaneError) -> None:
        self._left = True
        self._tell(Ended(self.number, *fault_of(error)), [])

    def _remember(self, partition: int, lease: int) -> None:
        self._leases.add((partition, lease))
        if len(self._leases) > self._leases_looked + LEASES_REMEMBERED and self.attachment is not None:
            self._leases = {place for place in self._leases if self.attachment.holds(*place)}
            self._leases_looked = len(self._leases)

    # --- coming -------------------------------------------------------------------------------------------------------

    async def attach(self, session: Session, request: Attach) -> dict[int, int]:
        """Take part in the subscription. Returns the positions, in the same moment in which messages may come."""
        try:
            attachment = await session.attach(
                request.topic,
                request.subscription,
                request.config,
                start_of(request.start),
                self.consumer,
                keep_retry=request.keep_retry,
            )
            self.attachment = attachment
        finally:
            if not self._attached.done():
                self._attached.set_result(None)
        if self._ended:
            await attachment.end()
            raise Closed("the consumer had ended before it was attached")
        if self._left:
            attachment.leave()
        elif self._credit:
            attachment.add_credit(self._credit)
        return attachment.positions()

    def add_credit(self, messages: int) -> None:
        credit = self._credit if self.attachment is None else self.consumer.credit
        if not 0 <= messages <= CREDIT_MESSAGES_MAX - credit:
            problem = f"a credit of {messages} more on {credit} is not in 0 to {CREDIT_MESSAGES_MAX:,}"
            raise ProtocolError("bad-message", problem)
        if self._left or self._ended:
            return
        if self.attachment is None:
            self._credit += messages
        else:
            self.attachment.add_credit(messages)

    def pause(self) -> None:
        self.consumer.paused = True

    def resume(self) -> None:
        self.consumer.paused = False
        if self.attachment is not None:
            self.attachment.resume()

    # --- answering ----------------------------------------------------------------------------------------------------

    def settle(self, leases: Sequence[LeaseRuns]) -> None:
        for each in leases:
            offsets = offsets_of_runs(each)
            if self.attachment is not None and self.attachment.holds(each.partition, each.lease):
                self.attachment.settle(each.partition, each.lease, offsets)

    def release(self, leases: Sequence[LeaseRuns]) -> None:
        for each in leases:
            offsets = offsets_of_runs(each)
            if self.attachment is not None and self.attachment.holds(each.partition, each.lease):
                self.attachment.release(each.partition, each.lease, offsets)

    async def ack(self, lease: LeaseRuns) -> None:
        attachment, number, offsets = self._find(lease)
        await attachment.ack(lease.partition, number, offsets)

    async def nack(self, lease: LeaseRuns, delay: float | None, reason: str | None, *, confirm: bool) -> None:
        attachment, number, offsets = self._find(lease)
        await attachment.nack(lease.partition, number, offsets, delay=delay, reason=reason, confirm=confirm)

    async def extend(self, lease: LeaseRuns, seconds: float) -> int:
        attachment, number, _ = self._find(lease)
        return await attachment.extend(lease.partition, number, seconds)

    def leased(self, lease: LeaseRuns) -> tuple[Attachment, int, int, BitMap64]:
        """For a transaction: all of these are to be acknowledged, or nothing."""
        attachment, number, offsets = self._find(lease)
        if offsets is None:
            _, subscription = attachment.find(lease.partition)
            offsets = subscription.leases.held(number, None)
        return attachment, lease.partition, number, offsets

    def _find(self, lease: LeaseRuns) -> tuple[Attachment, int, BitMap64 | None]:
        """A lease that is not this consumer's is as good as one that has ended."""
        offsets = offsets_of_runs(lease)
        if self.attachment is None:
            raise Closed(f"consumer {self.number} is not attached: it holds no lease")
        if self.attachment.holds(lease.partition, lease.lease):
            return self.attachment, lease.lease, offsets
        if offsets is None:
            name = self.attachment.group.name
            raise LeaseLost(name, f"lease {lease.lease} has ended; its messages may come again")
        return self.attachment, _NO_LEASE, offsets

    # --- leaving ------------------------------------------------------------------------------------------------------

    def leave(self, unhandled: Sequence[LeaseRuns] = ()) -> None:
        """Take no more. Idempotent."""
        self.release(unhandled)
        self._left = True
        if self.attachment is not None:
            self.attachment.leave()

    async def detach(self, *, end: bool) -> bool:
        """Leave, and let go of what is not needed. True if nothing more can be answered: it may be forgotten."""
        self.leave()
        await self._attached_or_not()
        if self.attachment is None:
            return True
        if end:
            await self.end()
            return True
        await self.attachment.detach()
        if self.attachment.holds_any():
            return False
        await self.end()  # It may have left before, holding messages that are answered by now.
        return True

    async def end(self, *, node_stops: bool = False) -> None:
        """Its connection is gone, or another one has taken its identity over."""
        self._ended = True
        self.leave()
        await self._attached_or_not()
        if self.attachment is not None:
            await self.attachment.end(node_stops=node_stops)

    async def _attached_or_not(self) -> None:
        if not self._attached.done():
            await asyncio.wait([self._attached])

    def taken_over(self) -> None:
        """Another connection has its identity now."""
        self._closed(Closed(f"another connection has taken consumer {self.identity!r} over"))

    def never_attached(self) -> None:
        """Its `attach` will not be called any more."""
        if not self._attached.done():
            self._attached.set_result(None)

    @property
    def left(self) -> bool:
        return self._left

    @property
    def busy(self) -> bool:
        """Whether its client has still to answer for something."""
        return self.attachment is not None and self.attachment.holds_any()


def offsets_of_runs(lease: LeaseRuns) -> BitMap64 | None:
    return None if lease.runs is None else from_runs(lease.runs)


def start_of(start: StartPoint) -> Start:
    return moment_of("start", start) if isinstance(start, int) else start


def moment_of(argument: str, time_us: int) -> datetime:
    """Raises `InvalidArgument` for what no calendar has."""
    try:
        return _EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        raise InvalidArgument(argument, f"{time_us} µs since 1970 is no moment of the calendar") from None
