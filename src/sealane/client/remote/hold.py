"""A consumer's hold on a subscription of a node: attached on a link, and attached again on the next one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec
from pyroaring import BitMap64

from sealane.client.broker import LaneConsumer
from sealane.client.lane import CLOSE_SECONDS
from sealane.client.remote.broadcasting import BroadcastPlace
from sealane.client.remote.deliveries import GENERATION_SHIFT, delivery_of
from sealane.client.remote.link import Link, LinkLost
from sealane.client.remote.reconnecting import ReconnectingLink
from sealane.client.remote.requests import checked, grouped_runs, lease_runs, split_runs
from sealane.errors import LeaseLost, RateLimited, SealaneError, Unavailable
from sealane.node.consumers import Revocation
from sealane.node.deliveries import offsets_of
from sealane.wire.faults import error_of
from sealane.wire.messages import (
    Ack,
    Attach,
    Attached,
    Credit,
    Deliver,
    Detach,
    Ended,
    Extend,
    LeaseRuns,
    Leave,
    Nack,
    Refused,
    Release,
    Revoke,
    Settle,
)
from sealane.wire.runs import from_runs

LEFT_OUT = "the connection was lost before the node had confirmed it: it may have happened, or the messages come again"
OVER = "the connection under which the messages were leased is gone; they may come again"


class RemoteHold:
    """Implements `Hold`. Leases are numbered by link: an answer to a lease of an earlier link changes nothing; where
    someone waits for it, it raises `LeaseLost`. So does a confirmed answer whose link is lost before the node's word:
    it may or may not have happened.
    """

    def __init__(
        self, line: ReconnectingLink, number: int, request: Attach, consumer: LaneConsumer, patience_seconds: float
    ) -> None:
        """`patience_seconds`: how long the first `Attach` is sent again if a rate limit refuses it. Later ones, on new
        links, are for as long as it takes.
        """
        self.line = line
        self.identity = request.identity
        self._number = number
        self._request = request
        self._consumer = consumer
        self._place = BroadcastPlace() if request.config.mode == "broadcast" else None
        self._link: Link | None = None
        """Where `Attach` was sent."""
        self._is_attached = False
        """The node has answered it, and hears what is said of this consumer."""
        self._credit = 0
        """What the node may still deliver, by all that it was told or will be told with the next `Attach`."""
        self._untold = 0
        """Credit since `Attach` was sent that was not told."""
        self._left = False
        self._loop = asyncio.get_running_loop()
        self._first: asyncio.Future[None] = self._loop.create_future()
        self._give_up = self._loop.time() + patience_seconds

    # --- coming -------------------------------------------------------------------------------------------------------

    async def attach(self) -> None:
        """Returns when the node has taken it in for the first time; from then on it looks after itself."""
        self.line.users[self] = None
        self.line.consumers[self._number] = self
        try:
            if self.line.current is not None:
                self.linked(self.line.current)
            else:
                self.line.begin()
            await self._first
        except BaseException:
            self._abandon()
            raise

    def linked(self, link: Link) -> None:
        if self._left:
            return
        self._link, self._is_attached, self._untold = link, False, 0
        start = self._request.start
        if self._place is not None and self._first.done():
            start = self._place.start()
        request = msgspec.structs.replace(self._request, start=start, credit=self._credit)
        link.ask(request, (), lambda reply, body, error: self._answered(link, reply, error))

    def _answered(self, link: Link, reply: Any, error: SealaneError | None) -> None:
        if isinstance(error, Unavailable) or link is not self._link:
            return  # The link is lost: the next one asks again.
        if type(reply) is Refused:
            if not link.takes_requests:
                return  # It is about to stop. So too.
            error = error_of(reply.code, reply.text, reply.fields)
        if isinstance(error, RateLimited) and self._attach_later(link, error.retry_after_seconds):
            return
        if error is not None:
            self._forget_link()
            self._fail(error)
            return
        assert isinstance(reply, Attached)
        self._is_attached = True
        if self._place is not None:
            self._place.began(reply.positions)
        if self._left:
            link.tell(Detach(0, self._number, True))
            self._forget_link()
        elif self._untold:
            link.tell(Credit(self._number, self._untold))
        self._untold = 0
        if not self._first.done():
            self._first.set_result(None)

    def _attach_later(self, link: Link, seconds: float) -> bool:
        """Whether there is time for that."""
        if not self._first.done() and self._loop.time() + seconds >= self._give_up:
            return False
        self._loop.call_later(seconds, self._attach_again, link)
        return True

    def _attach_again(self, link: Link) -> None:
        if self._left:
            self._forget_link()
        elif link is self._link:
            self.linked(link)

    def _fail(self, error: SealaneError) -> None:
        """Nothing will come any more."""
        if not self._first.done():
            self._first.set_exception(error)
        else:
            self._consumer.closed(error)

    def _abandon(self) -> None:
        """Who attached does not wait any more: if the node takes it in after all, it leaves at once."""
        self._left = True
        if self._link is None or not self._link.open:
            self._forget_link()
        elif self._is_attached:
            self._link.tell(Detach(0, self._number, True))
            self._forget_link()

    def _forget_link(self) -> None:
        self.line.users.pop(self, None)
        self.line.consumers.pop(self._number, None)

    # --- what happens to links ----------------------------------------------------------------------------------------

    def draining(self, link: Link) -> None:
        """What was handed out may still be answered there; what was not goes back, for whoever comes next."""
        if link is not self._link:
            return
        was_attached = self._is_attached
        self._link, self._is_attached = None, False
        if was_attached and not self._left:
            self._leave(link, self._consumer.lost())

    def lost(self, link: Link) -> None:
        if link is self._link:
            self._link, self._is_attached = None, False
            if not self._left:
                self._consumer.lost()
        if self._left:
            self._forget_link()

    def writable(self, link: Link) -> None:
        pass

    def failed(self, error: SealaneError) -> None:
        self._forget_link()
        self._fail(error)

    # --- taking -------------------------------------------------------------------------------------------------------

    def add_credit(self, messages: int) -> None:
        self._credit += messages
        if self._link is None or self._left:
            return
        if self._is_attached:
            self._link.tell(Credit(self._number, messages))
        else:
            self._untold += messages

    def heard(self, link: Link, message: Deliver | Revoke | Ended, body: memoryview) -> None:
        if isinstance(message, Deliver):
            self._deliver(link, message, body)
        elif isinstance(message, Revoke):
            lease = link.generation << GENERATION_SHIFT | message.lease
            self._consumer.revoke(Revocation(message.partition, lease, from_runs(message.runs)))
        elif link is self._link:
            self._forget_link()
            self._fail(error_of(message.code, message.text, message.fields))

    def _deliver(self, link: Link, message: Deliver, body: memoryview) -> None:
        delivery = delivery_of(message, body, self._request.subscription, link.generation)
        for part in delivery.parts:
            self._credit -= len(part.batch)
        if self._left or link is not self._link:
            every = BitMap64()
            for part in delivery.parts:
                every |= offsets_of(part)
            self.release(delivery.partition, delivery.lease, every)
            return
        if self._place is not None:
            parts, known = self._place.split(delivery)
            if known:
                self.settle(delivery.partition, delivery.lease, known)
                self.add_credit(len(known))
                delivery = msgspec.structs.replace(delivery, parts=parts)
        if delivery.parts:
            self._consumer.deliver(delivery)

    # --- answering ----------------------------------------------------------------------------------------------------

    def settle(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        if self._place is not None and offsets is not None:
            self._place.settle(partition, offsets)
        link = self._link_of(lease)
        if link is not None:
            for runs in split_runs(partition, lease, offsets):
                link.tell(Settle(self._number, [runs]))

    def settle_together(self, acks: Mapping[tuple[int, int], BitMap64]) -> None:
        by_link: dict[Link, list[tuple[int, int, BitMap64]]] = {}
        for (partition, lease), offsets in acks.items():
            if self._place is not None:
                self._place.settle(partition, offsets)
            link = self._link_of(lease)
            if link is not None:
                by_link.setdefault(link, []).append((partition, lease, offsets))
        for link, leases in by_link.items():
            for group in grouped_runs(leases):
                link.tell(Settle(self._number, group))

    async def ack(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        for runs in split_runs(partition, lease, offsets):
            await self._confirmed(Ack(0, self._number, runs), lease)
        if self._place is not None and offsets is not None:
            self._place.settle(partition, offsets)

    async def nack(
        self,
        partition: int,
        lease: int,
        offsets: BitMap64 | None = None,
        *,
        delay: float | None = None,
        reason: str | None = None,
        confirm: bool = False,
    ) -> None:
        for runs in split_runs(partition, lease, offsets):
            request = checked(Nack(0, self._number, runs, delay, reason))
            if confirm:
                await self._confirmed(request, lease)
            elif self._request.config.mode == "key-shared":
                # The node takes back what was fetched ahead of the same key. None of it may be handed out meanwhile:
                # its word is waited for, and comes after what it takes back.
                with suppress(LeaseLost):
                    await self._confirmed(request, lease)
            elif (link := self._link_of(lease)) is not None:
                link.tell(request)

    async def extend(self, partition: int, lease: int, seconds: float) -> int:
        request = checked(Extend(0, self._number, lease_runs(partition, lease, None), seconds))
        reply = await self._confirmed(request, lease)
        deadline_us: int = msgspec.msgpack.decode(reply.value, type=int)
        return deadline_us

    async def _confirmed(self, request: Any, lease: int) -> Any:
        link = self._link_of(lease)
        if link is None:
            raise LeaseLost(self._request.subscription, OVER)
        try:
            reply, _ = await link.request(request)
        except LinkLost:
            raise LeaseLost(self._request.subscription, LEFT_OUT) from None
        except Unavailable:
            raise LeaseLost(self._request.subscription, OVER) from None
        return reply

    def release(self, partition: int, lease: int, offsets: BitMap64 | None = None) -> None:
        link = self._link_of(lease)
        if link is not None:
            for runs in split_runs(partition, lease, offsets):
                link.tell(Release(self._number, [runs]))

    def leased(self, partition: int, lease: int, offsets: BitMap64) -> LeaseRuns:
        """For a transaction. A lease of an earlier link is none that the node knows."""
        runs = lease_runs(partition, lease, offsets)
        if self._link_of(lease) is None:
            runs.lease = -1
        return runs

    def _link_of(self, lease: int) -> Link | None:
        link = self.line.links.get(lease >> GENERATION_SHIFT)
        return link if link is not None and link.open else None

    # --- leaving ------------------------------------------------------------------------------------------------------

    def leave(self, unhandled: Sequence[tuple[int, int, BitMap64]] = ()) -> None:
        if not self._left:
            self._left = True
            self._consumer.credit = 0
            if self._link is not None and self._is_attached:
                self._leave(self._link, unhandled)

    def _leave(self, link: Link, unhandled: Sequence[tuple[int, int, BitMap64]]) -> None:
        """What was leased by another link went back when that one was lost."""
        here = [each for each in unhandled if each[1] >> GENERATION_SHIFT == link.generation]
        first, *rest = grouped_runs(here)
        link.tell(Leave(self._number, first))
        for group in rest:
            link.tell(Release(self._number, group))

    async def detach(self) -> None:
        await self._detached(end=False)

    async def end(self) -> None:
        await self._detached(end=True)

    def detach_at_once(self) -> None:
        _ = self._begin_detach(end=False)

    async def _detached(self, *, end: bool) -> None:
        """Wait for the node's word, but not for ever, and not if the caller is being cancelled."""
        done = self._begin_detach(end=end)
        task = asyncio.current_task()
        if not done.done() and (task is None or not task.cancelling()):
            await asyncio.wait([done], timeout=CLOSE_SECONDS)

    def _begin_detach(self, *, end: bool) -> asyncio.Future[None]:
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.leave()
        link = self._link
        if link is None or not link.open:
            self._forget_link()
            done.set_result(None)
        elif not self._is_attached:
            done.set_result(None)  # The answer to `Attach` will find that it has left.
        else:

            def answered(reply: Any, body: memoryview, error: SealaneError | None) -> None:
                self._forget_link()  # Until now something could come that had to be sent back.
                if not done.done():
                    done.set_result(None)

            link.ask(Detach(0, self._number, end), (), answered)
        return done
