"""The consumers of one connection, by the numbers under which it speaks of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from sealane.doors.native.consumers import NativeConsumer
from sealane.errors import AlreadyExists, Closed, InvalidArgument
from sealane.wire.messages import Attach, Credit, Leave, Release, Settle

if TYPE_CHECKING:
    from sealane.doors.native.connection import NativeConnection
    from sealane.doors.native.door import NativeDoor

CONSUMERS_MAX = 1_000
"""Consumers of one connection."""
CONSUMERS_REMEMBERED = 100
"""Consumers of one connection that have ended, and that a late answer may still name."""
IDENTITY_CHARS_MAX = 128
"""A consumer's identity: room for a UUID and a name."""


class AttachedConsumers:
    """Of one connection, which the door knows them by."""

    __slots__ = ("_connection", "_door", "_inside", "_over", "_paused")

    def __init__(self, door: NativeDoor, connection: NativeConnection) -> None:
        self._door = door
        self._connection = connection
        self._inside: dict[int, NativeConsumer] = {}
        self._over: dict[int, NativeConsumer] = {}
        """The last that were forgotten: late answers find out from them what became of their messages."""
        self._paused = False

    @property
    def busy(self) -> bool:
        """Whether one of them holds something, or has not been told everything."""
        return any(consumer.busy for consumer in self._inside.values())

    # --- coming and going ---------------------------------------------------------------------------------------------

    def add(self, request: Attach, name: str, tell: Callable[..., None]) -> NativeConsumer:
        """It is there from the moment in which `Attach` is heard, so that what is said next finds it."""
        number, identity = request.consumer, request.identity
        if number in self._inside:
            raise AlreadyExists("consumer", str(number), "this connection calls another one so")
        if len(self._inside) >= CONSUMERS_MAX:
            raise InvalidArgument("consumer", f"this connection has {CONSUMERS_MAX:,} already; open another one")
        if not 0 < len(identity) <= IDENTITY_CHARS_MAX:
            raise InvalidArgument("identity", f"it has {len(identity):,} characters, not 1 to {IDENTITY_CHARS_MAX}")
        consumer = NativeConsumer(number, identity, name, self._connection.body_bytes_max, tell)
        consumer.add_credit(request.credit)
        if self._paused:
            consumer.pause()
        self._inside[number] = consumer
        self._door.consumer_came(self._connection, consumer)
        return consumer

    def find(self, number: int) -> NativeConsumer:
        """One that is here, or was lately. Raises `Closed`."""
        found = self._inside.get(number) or self._over.get(number)
        if found is None:
            raise Closed(f"this connection has no consumer {number}: it has ended")
        return found

    def forget(self, consumer: NativeConsumer) -> None:
        if self._inside.get(consumer.number) is consumer:
            del self._inside[consumer.number]
            self._over[consumer.number] = consumer
            if len(self._over) > CONSUMERS_REMEMBERED:
                del self._over[next(iter(self._over))]
        self._door.consumer_forgotten(self._connection, consumer)

    def tidy(self) -> None:
        """Forget those that have left and whose last lease has ended."""
        for consumer in [each for each in self._inside.values() if each.left and not each.busy]:
            self._door.consumer_done(self._connection, consumer)

    # --- all of them --------------------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Those that come later are paused too."""
        self._paused = True
        for consumer in self._inside.values():
            consumer.pause()

    def resume(self) -> None:
        self._paused = False
        for consumer in self._inside.values():
            consumer.resume()

    def leave(self) -> None:
        """Nothing more is delivered to them; what they have may still be answered."""
        for consumer in self._inside.values():
            consumer.leave()

    def lose(self) -> None:
        """The connection is gone: their leases end."""
        for consumer in self._inside.values():
            consumer.leave()
            self._door.consumer_lost(self._connection, consumer)
        self._inside.clear()

    # --- what is said of one ------------------------------------------------------------------------------------------

    def hear(self, note: Credit | Settle | Release | Leave) -> None:
        """Of one that has ended nothing more is heard."""
        if (consumer := self._inside.get(note.consumer)) is not None:
            _NOTES[type(note)](consumer, note)


_NOTES: dict[type, Callable[[NativeConsumer, Any], None]] = {
    Credit: lambda consumer, credit: consumer.add_credit(credit.messages),
    Settle: lambda consumer, settle: consumer.settle(settle.leases),
    Release: lambda consumer, release: consumer.release(release.leases),
    Leave: lambda consumer, leave: consumer.leave(leave.unhandled),
}
