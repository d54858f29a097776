"""The links of a lane: one for publishes and commands, the others for consumers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from itertools import cycle

from sealane.client.remote.addresses import Address
from sealane.client.remote.credentials import Credentials
from sealane.client.remote.reconnecting import ReconnectingLink
from sealane.client.remote.tls import ClientTls
from sealane.errors import InvalidArgument, Unavailable
from sealane.wire.frames import new_scratch
from sealane.wire.messages import Hello, Welcome

CONNECTIONS_DEFAULT = 2
CONNECTIONS_MAX = 64
"""Of one lane. A node serves thousands of connections, and one carries more than a process can make."""


class Pool:
    """Links are opened when they are first needed. With one connection everything shares it."""

    def __init__(
        self,
        addresses: tuple[Address, ...],
        hello: Hello,
        credentials: Credentials,
        entropy: Callable[[int], bytes],
        connections: int = CONNECTIONS_DEFAULT,
        tls: ClientTls | None = None,
    ) -> None:
        if not 1 <= connections <= CONNECTIONS_MAX:
            raise InvalidArgument("connections", f"{connections} is not in 1 to {CONNECTIONS_MAX}")
        scratch = new_scratch()
        self._addresses = addresses
        self._lines = [
            ReconnectingLink(addresses, hello, credentials, scratch, entropy, tls) for _ in range(connections)
        ]
        self.commands = self._lines[0]
        self._next_for_consumer = cycle(self._lines[1:] or self._lines)

    async def open(self, timeout_seconds: float) -> Welcome:
        """Returns when a node has answered. Raises `Unavailable` with addresses and causes when none does in time, and
        `TooManyConnections` when those that answer take no more.
        """
        try:
            async with asyncio.timeout(timeout_seconds):
                link = await self.commands.connected()
        except TimeoutError:
            if self.commands.crowded is not None:
                raise self.commands.crowded from None
            wanted = ", ".join(map(str, self._addresses))
            cause = self.trouble or "no answer"
            problem = f"no node answered at {wanted} within {timeout_seconds:g} s ({cause}); is one running there?"
            raise Unavailable(problem) from None
        assert link.welcome is not None
        return link.welcome

    def for_consumer(self) -> ReconnectingLink:
        """Where the next consumer attaches."""
        return next(self._next_for_consumer)

    @property
    def trouble(self) -> str | None:
        return next((line.trouble for line in self._lines if line.trouble is not None), None)

    async def close(self, *, seconds: float) -> None:
        await asyncio.gather(*(line.close(seconds=seconds) for line in self._lines))
