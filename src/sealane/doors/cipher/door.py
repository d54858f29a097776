"""The cipher door: what its connections have in common."""

from __future__ import annotations

import itertools

from sealane.doors.cipher.confirmed import Confirmed
from sealane.doors.cipher.connection import CipherConnection
from sealane.doors.cipher.lives import Lives
from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.doors.nameless.door import NamelessDoor
from sealane.doors.tls import NodeTls
from sealane.node.gate import Gate
from sealane.wire.cipher import replies

SHORT_LINE_BYTES = 64 << 10
"""What has come of a line may be so long whatever others send: commands always have room."""


class CipherDoor(NamelessDoor[CipherDoorSettings]):
    name = "cipher"
    word_to_plain_text = replies.error("this door speaks TLS (doors.cipher.tls); connect with it")

    def __init__(self, gate: Gate, settings: CipherDoorSettings, *, tls: NodeTls | None = None) -> None:
        super().__init__(gate, settings, tls=tls)
        self.lives = Lives(told=settings.log_messages)
        self.confirmed = Confirmed()
        self._begun: dict[CipherConnection, int] = {}
        self.begun_bytes = 0
        """What has come, by all connections, of lines that have no end yet."""
        self._numbers = itertools.count(1)

    def new_connection(self) -> CipherConnection:
        return CipherConnection(self, next(self._numbers))

    def has_room_for(self, connection: CipherConnection, begun_bytes: int) -> bool:
        """Whether a connection may keep so much of a line that has no end yet, beside what others keep of theirs."""
        self.begun_bytes += begun_bytes - self._begun.pop(connection, 0)
        if begun_bytes:
            self._begun[connection] = begun_bytes
        return begun_bytes <= SHORT_LINE_BYTES or self.begun_bytes <= self.settings.in_flight_bytes_total_max
