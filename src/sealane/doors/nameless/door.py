"""A door whose clients cannot say who they are."""

from __future__ import annotations

from typing import Any, TypeVar

from sealane.doors.nameless.connection import NamelessConnection
from sealane.doors.nameless.settings import NamelessDoorSettings
from sealane.doors.stream_door import StreamDoor

Settings = TypeVar("Settings", bound=NamelessDoorSettings)


class NamelessDoor(StreamDoor[Settings, NamelessConnection[Any]]):
    def close_idle(self) -> None:
        for connection in list(self._connections):
            if not connection.busy:
                connection.close()

    def dismiss(self) -> None:
        """Their protocols have no word for it: they are cut off when the door is closed."""
