"""The doors of the matrix: ways in which a principal gets a lane. A new door is one more line in `DOORS`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import sealane
from sealane.client import Lane
from sealane.client.embedded import InProcessBroker
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal
from tests.native_node import NativeNode


class Guests:
    """Stands where credentials are checked: whoever comes in next is the one that was announced."""

    def __init__(self) -> None:
        self.expected: Principal = ADMIN

    async def authenticate(self, shown: Introduction) -> Principal:
        return self.expected


Door = Callable[[NativeNode, Guests, Principal], AbstractAsyncContextManager[Lane]]


@asynccontextmanager
async def in_process(node: NativeNode, guests: Guests, principal: Principal) -> AsyncIterator[Lane]:
    async with Lane(InProcessBroker(node.node, principal)) as lane:
        yield lane


@asynccontextmanager
async def native(node: NativeNode, guests: Guests, principal: Principal) -> AsyncIterator[Lane]:
    guests.expected = principal
    async with sealane.connect(node.url) as lane:
        yield lane


DOORS: dict[str, Door] = {
    "in-process": in_process,
    "native": native,
}
