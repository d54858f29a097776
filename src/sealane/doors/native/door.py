"""The native door: knows its connections and their consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ClassVar

import msgspec

from sealane.doors.native.connection import NativeConnection
from sealane.doors.native.consumers import NativeConsumer
from sealane.doors.native.settings import NativeDoorSettings
from sealane.doors.stream_door import StreamDoor
from sealane.doors.tls import NodeTls
from sealane.errors import Closed, TooManyConnections
from sealane.node.gate import Gate
from sealane.wire.frames import frame, new_scratch
from sealane.wire.messages import Goodbye

QUIET_SECONDS = 0.5
"""A connection that is drained and has had nothing to do for so long is closed, if its client does not do it: long
enough for a request that was on its way to be refused with a word."""


class NativeDoor(StreamDoor[NativeDoorSettings, NativeConnection]):
    name: ClassVar[str] = "native"
    word_to_plain_text: ClassVar[bytes] = b"".join(
        frame(msgspec.msgpack.encode(Goodbye("unauthenticated", "this door speaks TLS: connect by sealanes://")))
    )

    def __init__(
        self,
        gate: Gate,
        settings: NativeDoorSettings,
        *,
        node_id: str,
        software: str,
        tls: NodeTls | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Without `tls` it speaks plain text."""
        super().__init__(gate, settings, tls=tls, clock=clock)
        self.node_id = node_id
        self.software = software
        self.supervisor = gate.supervisor
        self.refused = gate.refused
        self.call_soon = asyncio.get_running_loop().call_soon
        self.scratch = new_scratch()
        self.received_bytes = 0
        self.sent_bytes = 0
        self.connections_refused = 0
        self._consumers: dict[tuple[str, str], tuple[NativeConnection, NativeConsumer]] = {}
        """By principal and identity: those that transactions may name."""
        self._came = 0

    @property
    def consumers(self) -> int:
        return len(self._consumers)

    @property
    def in_flight_bytes(self) -> int:
        """What clients have asked for and not been answered yet."""
        return self.budget.in_flight_bytes

    # --- coming and going ---------------------------------------------------------------------------------------------

    def new_connection(self) -> NativeConnection:
        self._came += 1
        return NativeConnection(self, self._came)

    def came(self, connection: NativeConnection) -> None:
        """A connection was made; one that may not stay is told why."""
        try:
            super().came(connection)
        except Closed as error:
            connection.say_goodbye("closing", str(error))
        except TooManyConnections as error:
            self.connections_refused += 1
            connection.turn_away(error)

    def close_idle(self) -> None:
        now = self.clock()
        for connection in list(self._connections):
            if connection.busy:
                connection.quiet_since = None
            elif connection.quiet_since is None:
                connection.quiet_since = now
            elif now - connection.quiet_since >= QUIET_SECONDS:
                connection.say_goodbye("closing", "the node stops, and everything that was asked for is done")

    def dismiss(self) -> None:
        for connection in list(self._connections):
            connection.say_goodbye("closing", "the node stops, and waited as long as it may")

    def sweep(self) -> None:
        super().sweep()
        for connection in list(self._connections):
            connection.tidy()

    # --- consumers ----------------------------------------------------------------------------------------------------

    def _place(self, connection: NativeConnection, identity: str) -> tuple[str, str]:
        return connection.session.principal.name, identity

    def consumer_came(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """It has its identity from now on: of an earlier one, whose connection may be half dead, it takes it over."""
        place = self._place(connection, consumer.identity)
        earlier = self._consumers.get(place)
        self._consumers[place] = (connection, consumer)
        if earlier is not None:
            self._take_over(*earlier)

    def find_consumer(self, connection: NativeConnection, identity: str) -> NativeConsumer:
        found = self._consumers.get(self._place(connection, identity))
        if found is None:
            raise Closed(f"there is no consumer {identity!r}: it has ended, and what it held may be delivered again")
        return found[1]

    def consumer_done(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """It has left, and holds nothing any more."""
        connection.forget_consumer(consumer)
        self._end(consumer)

    def consumer_lost(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        """Its connection is gone: its leases end."""
        self.consumer_forgotten(connection, consumer)
        self._end(consumer, node_stops=self.draining)

    def consumer_forgotten(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        place = self._place(connection, consumer.identity)
        if self._consumers.get(place) == (connection, consumer):
            del self._consumers[place]

    def _take_over(self, connection: NativeConnection, consumer: NativeConsumer) -> None:
        connection.forget_consumer(consumer)
        consumer.taken_over()
        self._end(consumer)

    def _end(self, consumer: NativeConsumer, *, node_stops: bool = False) -> None:
        _ = self.spawn("native consumer's end", consumer.end(node_stops=node_stops))
