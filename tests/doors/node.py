"""A node with all its doors open, in the test's own process. Whoever comes in is the one that was announced."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sealane.client import Lane
from sealane.client.embedded import InProcessBroker
from sealane.client.embedded import in_process as lane_of_admin
from sealane.delivery.due import rounded_up
from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.errors import Unauthenticated
from sealane.node import Node
from sealane.node.gate import Gate
from sealane.node.surroundings import wall_clock_us
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal
from tests.native_node import native_node
from tests.unit.node.running_node import until


@dataclass
class ManyDoors:
    node: Node
    native_url: str
    http: HttpDoor
    admin: Lane
    guest: Principal = ADMIN
    """Who comes in next, and who each request is made by."""
    stranger: bool = False
    """Nobody is known any more."""

    async def authenticate(self, shown: Introduction) -> Principal:
        if self.stranger:
            raise Unauthenticated("nobody knows you")
        return self.guest

    def lane_of_guest(self) -> Lane:
        if self.stranger:
            raise Unauthenticated("nobody knows you")
        return Lane(InProcessBroker(self.node, self.guest))


async def what_expires_at_once_has_expired() -> None:
    """Moments are rounded up to the millisecond: until the next one begins, a fast door may still hand it out."""
    due_us = rounded_up(wall_clock_us() + 1)
    await until(lambda: wall_clock_us() >= due_us)


@asynccontextmanager
async def many_doors() -> AsyncIterator[ManyDoors]:
    doors: ManyDoors | None = None

    async def authenticate(shown: Introduction) -> Principal:
        assert doors is not None
        return await doors.authenticate(shown)

    async with native_node(authenticate=authenticate) as native:
        watched = Watched(lambda: True, list, lambda: (b"", "text/plain"))
        http = HttpDoor(HttpDoorSettings(port=0), watched)
        gate = Gate(native.node, authenticate)
        try:
            await http.start()
            http.let_in(gate)
            async with lane_of_admin(native.node) as admin:
                doors = ManyDoors(native.node, native.url, http, admin)
                yield doors
        finally:
            await http.close()
