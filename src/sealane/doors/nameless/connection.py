"""One connection to a door of this kind: who it is, whether it is read from, and what it may take its time for."""

from __future__ import annotations

import asyncio
import socket
from abc import abstractmethod
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from sealane.doors.deadlines import Deadline
from sealane.doors.intake import Intake
from sealane.errors import SealaneError, Unauthenticated
from sealane.node.entrances import Entrance
from sealane.node.session import Session
from sealane.security.introductions import Introduction
from sealane.sockets import prepare

if TYPE_CHECKING:
    from sealane.doors.nameless.door import NamelessDoor

UNSENT_BYTES = 1 << 20
"""What may wait to be sent before a consumer is given no more: some milliseconds of a fast line."""
FAREWELL_SECONDS_MAX = 5.0
"""A last word that is not taken in this time is not waited for."""
KEEPALIVE_IDLE_SECONDS = 30
KEEPALIVE_PROBE_SECONDS = 10
KEEPALIVE_PROBES = 3
"""After so much silence a client's machine is asked whether it is there, so often: it is found gone within a minute,
and not within the hours that TCP takes by itself."""

DoorOf = TypeVar("DoorOf", bound="NamelessDoor[Any]")


class NamelessConnection(asyncio.Protocol, Generic[DoorOf]):
    """Inside of TLS, if there is TLS. Nothing is read before it is known who it is.

    A protocol of a door says `began`, `hear`, `tell` and `ended`, sets `partial` while a frame or line has come in
    part, and says when one `came_whole`.
    """

    def __init__(self, door: DoorOf) -> None:
        self.door = door
        self.loop = asyncio.get_running_loop()
        self.transport: asyncio.Transport
        self.host = ""
        self.session: Session | None = None
        """There from `began` on."""
        self.intake = Intake(door.settings.in_flight_bytes_max, door.budget)
        self.partial = False
        self.heard_all = False
        """Whether the client has said that nothing more comes."""
        self.lost = False
        self.writing_paused = False
        self._entrance: Entrance | None = None
        self._entering: asyncio.Task[None] | None = None
        self._leaving = False
        self._early = b""
        """What came before it was known who it is."""
        self._partial_since: float | None = None

    # --- what a protocol says -----------------------------------------------------------------------------------------

    def began(self) -> None:
        """It is known who it is: `session` is there."""

    @abstractmethod
    def hear(self, data: bytes) -> None:
        """Something was received."""

    @abstractmethod
    def tell(self, error: SealaneError) -> None:
        """Say to the client what is wrong, in the words of the protocol. It does not close the connection."""

    def ended(self) -> None:
        """The connection is gone."""

    def drain(self) -> None:
        """The node stops: begin nothing new. What is `busy` may come to its end."""

    @property
    def busy(self) -> bool:
        """Whether something that was begun is not done yet."""
        return False

    # --- coming in ----------------------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.host = str((transport.get_extra_info("peername") or ("",))[0])
        self.transport.set_write_buffer_limits(high=UNSENT_BYTES)
        prepare(transport)
        _keep_alive(transport)
        self._unsent = Deadline(self.loop, self.transport)
        self.intake.open(self.transport)
        try:
            self.door.came(self)
        except SealaneError as error:
            self.turn_away(error)
            return
        self.intake.hold("requests")
        self._entering = self.door.spawn(f"{self.door.name} entrance", self._enter())

    async def _enter(self) -> None:
        door = self.door
        tls = self.transport.get_extra_info("ssl_object")
        certificate = tls.getpeercert(binary_form=True) if tls is not None else None
        appointed = door.settings.principal or ""
        shown = Introduction(certificate=certificate, address=self.host, door=door.name, appointed=appointed)
        try:
            session = await door.gate.enter(shown)
            if self._leaving:
                return
            self._entrance = door.gate.entrances.came(session.principal, self.host, self._shown_out)
        except SealaneError as error:
            self.turn_away(error)
            return
        except Exception:
            self.abort()
            raise
        finally:
            self._entering = None
        self.session = session
        self.began()
        early, self._early = self._early, b""
        if early:
            self.data_received(early)
        self.intake.let_go("requests")

    def full_name(self, name: str) -> str:
        """What a client calls `name`, in the door's domain. A name that says its domain keeps it."""
        domain = self.door.settings.domain
        return f"{domain}/{name}" if domain and "/" not in name else name

    # --- the transport ------------------------------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        if self._leaving:
            return
        if self.session is None:
            # uvloop begins to read after `connection_made`, whatever was said there.
            self._early += data
            self.transport.pause_reading()
            return
        self.hear(data)
        if not self.partial:
            self._partial_since = None
        elif self._partial_since is None:
            self._partial_since = self.loop.time()

    def came_whole(self) -> None:
        """A frame or line has come to its end: the next one has a time of its own, also if a part of it has come."""
        self._partial_since = None

    def eof_received(self) -> bool:
        """Those who hang up are told nothing more."""
        self.heard_all = True
        return False

    def pause_writing(self) -> None:
        self.writing_paused = True
        if not self._leaving:
            self._unsent.set(self.door.settings.send_seconds_max)

    def resume_writing(self) -> None:
        self.writing_paused = False
        if not self._leaving:
            self._unsent.clear()

    def connection_lost(self, error: Exception | None) -> None:
        self.lost = self._leaving = True
        self._unsent.clear()
        if self._entering is not None:
            self._entering.cancel()
        if self._entrance is not None:
            self.door.gate.entrances.left(self._entrance)
        self.intake.close()
        if self.session is not None:
            self.ended()
        self.door.went(self)

    # --- leaving ------------------------------------------------------------------------------------------------------

    def turn_away(self, error: SealaneError) -> None:
        """It is told why, and hears nothing more."""
        self.door.gate.refused(error)
        if not self._leaving:
            self.tell(error)
            self._part()

    def _part(self) -> None:
        """Close once the client has closed its end, and not before it had the time to read the last word: a socket that
        is closed with something unread in it is reset, and what it was told is lost.
        """
        self._leaving = True
        self._unsent.set(FAREWELL_SECONDS_MAX)
        if self.heard_all or not self.transport.can_write_eof():
            self.transport.close()
        elif not self.transport.is_closing():
            self.transport.write_eof()
            self.intake.close()
            self.transport.resume_reading()

    def close(self) -> None:
        """Send what waits, and close."""
        if not self._leaving:
            self._leaving = True
            self._unsent.set(FAREWELL_SECONDS_MAX)
        self.transport.close()

    def abort(self) -> None:
        self._leaving = True
        self.transport.abort()

    def _shown_out(self, why: Unauthenticated) -> None:
        self.turn_away(why)

    # --- time ---------------------------------------------------------------------------------------------------------

    def tick(self, now: float, *, deaf: bool) -> None:
        """About once a second. `deaf`: the node itself has not come to reading."""
        if self._partial_since is None or self._leaving:
            return
        if deaf or self.intake.paused:
            self._partial_since = now  # The rest may have come, and nobody has read it.
        elif now - self._partial_since > self.door.settings.receive_seconds_max:
            limit = f"doors.{self.door.name}.receive_seconds_max ({self.door.settings.receive_seconds_max:g} s)"
            self.turn_away(SealaneError(f"what was begun has not come to its end within {limit}"))


def _keep_alive(transport: asyncio.BaseTransport) -> None:
    """A client may be silent for days; that its machine is gone is for TCP to find out."""
    found = transport.get_extra_info("socket")
    if found is not None:
        with suppress(OSError):
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, KEEPALIVE_IDLE_SECONDS)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, KEEPALIVE_PROBE_SECONDS)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, KEEPALIVE_PROBES)
