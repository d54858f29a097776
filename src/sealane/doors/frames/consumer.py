"""One consumer: what it is handed is written to its socket, and settled once it is there."""

from __future__ import annotations

import select
from collections import deque
from typing import TYPE_CHECKING

from pyroaring import BitMap64

from sealane.doors.frames.handing import Handed, handed
from sealane.errors import SealaneError
from sealane.node.attachment import Attachment
from sealane.node.consumers import Consumer, Revocation
from sealane.node.deliveries import Delivery
from sealane.node.eager import Begun, begin
from sealane.node.session import Session

if TYPE_CHECKING:
    from sealane.doors.frames.connection import FramesConnection

TURN_MESSAGES = 32
"""Where several consume from one queue, each is handed so many at a time: a small burst is for all of them, and not for
the first alone. Whoever has used that up, since there is more than all of them take, gets twice as many next."""
_HUNG_UP = getattr(select, "POLLRDHUP", 0) | select.POLLHUP | select.POLLERR


class FramesConsumer:
    """Each message is in one of three places: unwritten, in the transport, or in the socket, where it is settled. The
    protocol has no word by which a client could say that it has handled something.
    """

    def __init__(self, connection: FramesConnection, session: Session, name: str) -> None:
        """Unlike any other, to the node, by its `name`."""
        self._connection = connection
        self._session = session
        self._consumer = Consumer(name, self._deliver, self._revoke, self._closed)
        self._attachment: Attachment | None = None
        self._unwritten: deque[Handed] = deque()
        self._in_transport: list[Handed] = []
        self._in_socket: list[Handed] = []
        """To be settled in the next pass of the loop, together."""
        self._turn = TURN_MESSAGES
        self._over = False

    # --- coming -------------------------------------------------------------------------------------------------------

    def join(self) -> None:
        """Take part in the subscription. Where its topic exists, that is done when this returns; otherwise producers
        wait for it. So whatever is heard of a producer after this consumer's first frame reaches it.
        """
        # Whether all of it is in the socket is told only where nothing else counts as room.
        self._connection.transport.set_write_buffer_limits(high=0)
        begun = begin(self._join())
        if begun is not None:
            self._connection.door.joins(_rest(begun))

    async def _join(self) -> None:
        try:
            attachment = await self._connection.door.attach(self._session, self._connection, self._consumer)
        except SealaneError as error:
            self._closed(error)
            return
        except Exception as error:
            self._connection.crashed("frames consumer", error)
            return
        if self._over:
            await attachment.end(node_stops=True)
            return
        self._attachment = attachment
        self.allow_more()

    def allow_more(self) -> None:
        """Let it be handed as many as it may have that are not in its socket."""
        if self._attachment is None or self._over:
            return
        door = self._connection.door
        allowed = door.settings.consumer_buffer_messages
        if door.is_shared:
            allowed = min(allowed, self._turn)
        held = sum(map(len, self._unwritten)) + sum(map(len, self._in_transport))
        self._attachment.add_credit(max(0, allowed - held) - self._consumer.credit)

    # --- hearing ------------------------------------------------------------------------------------------------------

    partial = False

    def hear(self, data: bytes) -> None:
        """Whatever a consumer says after its first frame is not listened to."""

    # --- handing over -------------------------------------------------------------------------------------------------

    def _deliver(self, delivery: Delivery) -> None:
        self._unwritten.extend(handed(delivery))
        if self._has_hung_up():
            self._leave()
            self._connection.abort()
        else:
            self._write()

    def _has_hung_up(self) -> bool:
        """Whether its client has gone, and the loop has not come to it: what is written now would be lost."""
        found = self._connection.transport.get_extra_info("socket")
        if self._connection.transport.is_closing() or found is None or found.fileno() < 0:
            return True
        poll = select.poll()
        poll.register(found.fileno(), _HUNG_UP)
        return bool(poll.poll(0))

    def _write(self) -> None:
        """As much as the socket takes now. Whatever is written behind something that waits would wait with it."""
        transport = self._connection.transport
        while self._unwritten and not self._in_transport:
            piece = self._unwritten.popleft()
            transport.write(piece.data)
            if transport.get_write_buffer_size() or transport.is_closing():
                self._in_transport.append(piece)
            else:
                self._settle_soon(piece)
        self._consumer.paused = bool(self._in_transport)

    def resume(self) -> None:
        """All that was in the transport is in the socket."""
        arrived, self._in_transport = self._in_transport, []
        for piece in arrived:
            self._settle_soon(piece)
        if not self._over:
            self._write()
        if not self._consumer.paused and self._attachment is not None:
            self._attachment.resume()

    def _settle_soon(self, piece: Handed) -> None:
        if not self._in_socket:
            # Not now: whoever hands it over is in the middle of that, and would go on without an end.
            self._connection.loop.call_soon(self._settle)
        self._in_socket.append(piece)

    def _settle(self) -> None:
        arrived, self._in_socket = self._in_socket, []
        leases: dict[tuple[int, int], BitMap64] = {}
        for piece in arrived:
            leases.setdefault((piece.partition, piece.lease), BitMap64()).update(piece.offsets)
        if self._attachment is not None:
            for (partition, lease), offsets in leases.items():
                self._attachment.settle(partition, lease, offsets)
        most = self._connection.door.settings.consumer_buffer_messages
        self._turn = min(2 * self._turn, most) if self._consumer.credit <= 0 else TURN_MESSAGES
        self.allow_more()

    def _revoke(self, revocation: Revocation) -> None:
        """Some that were handed to it are to be handed to someone again: what is unwritten of them need not be."""
        place = (revocation.partition, revocation.lease)
        for piece in list(self._unwritten):
            if (piece.partition, piece.lease) == place and piece.offsets <= revocation.offsets:
                self._unwritten.remove(piece)

    def _closed(self, error: SealaneError) -> None:
        """The topic or the subscription is gone, or it may not consume, or not any more."""
        self._leave()
        self._connection.door.consumer_went(self)
        self._connection.turn_away(error)

    def so_far(self) -> str:
        return ""

    # --- leaving ------------------------------------------------------------------------------------------------------

    def _leave(self, *, also_in_transport: bool = False) -> None:
        """Take no more; what is unwritten is for others, in its place."""
        self._over = True
        given_back = list(self._unwritten)
        self._unwritten.clear()
        if also_in_transport:
            given_back += self._in_transport
            self._in_transport = []
        if self._attachment is not None:
            self._attachment.leave([(piece.partition, piece.lease, piece.offsets) for piece in given_back])

    def drain(self) -> None:
        self._leave()

    @property
    def busy(self) -> bool:
        """Whether something is on its way to the socket, or not settled there."""
        return bool(self._in_transport or self._in_socket)

    def end(self) -> None:
        """The connection is gone: what is not in its socket is for others."""
        self._leave(also_in_transport=True)
        self._settle()
        self._connection.door.consumer_went(self)
        if self._attachment is not None:
            # As where the node stops, no attempt is counted of what nobody has seen.
            _ = self._connection.door.spawn("frames consumer", self._attachment.end(node_stops=True))


async def _rest(begun: Begun) -> None:
    await begun
