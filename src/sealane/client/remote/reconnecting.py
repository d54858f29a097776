"""A link that comes back: whoever uses it is told when it is there, draining or lost."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from sealane.client.remote.addresses import Address, Endpoint, resolve
from sealane.client.remote.credentials import Credentials
from sealane.client.remote.link import Link
from sealane.client.remote.opening import open_link
from sealane.client.remote.racing import first_to_answer
from sealane.client.remote.tls import ClientTls
from sealane.errors import Closed, SealaneError, TooManyConnections, Unavailable
from sealane.log import get_log
from sealane.wire.messages import Deliver, Ended, Hello, Revoke, Welcome

BACK_OFF_SECONDS_MIN = 0.05
BACK_OFF_SECONDS_MAX = 1.0
"""The longest pause between two attempts. A node that is back is found within it, so that everything flows again in
less than two seconds; and a thousand clients without a node ask no more than a thousand times a second."""
STEADY_SECONDS = 1.0
"""A link that has held this long starts the pauses from the shortest again."""

log = get_log("sealane.client")


class User(Protocol):
    """Who goes on across links: the publishes, each hold. Called in the order in which they came; none may raise."""

    def linked(self, link: Link) -> None:
        """A new link is there."""

    def draining(self, link: Link) -> None:
        """The node wants to stop: nothing new on this link. Another is looked for meanwhile."""

    def lost(self, link: Link) -> None: ...

    def writable(self, link: Link) -> None: ...

    def failed(self, error: SealaneError) -> None:
        """There will be no link: a node answered, and refused this client."""


class ConsumerEnd(Protocol):
    """Who takes what the node sends to a consumer."""

    def heard(self, link: Link, message: Deliver | Revoke | Ended, body: memoryview) -> None: ...


class ReconnectingLink:
    """One place in a lane's pool. It connects when it is first needed, and from then on until it is closed."""

    def __init__(
        self,
        addresses: tuple[Address, ...],
        hello: Hello,
        credentials: Credentials,
        scratch: memoryview,
        entropy: Callable[[int], bytes],
        tls: ClientTls | None = None,
    ) -> None:
        self._addresses = addresses
        self._hello = hello
        self._credentials = credentials
        self._scratch = scratch
        self._entropy = entropy
        self._tls = tls
        self.current: Link | None = None
        """The link on which new things begin."""
        self.links: dict[int, Link] = {}
        """By generation: those that still carry something, the current one too."""
        self.users: dict[User, None] = {}
        self.consumers: dict[int, ConsumerEnd] = {}
        """By the number under which the node knows them."""
        self.welcome: Welcome | None = None
        self.trouble: str | None = None
        """Why there is no link at the moment."""
        self.crowded: TooManyConnections | None = None
        """There if the last that was heard of a node is that it takes no more."""
        self._generation = 0
        self._task: asyncio.Task[None] | None = None
        self._waiters: list[asyncio.Future[Link]] = []
        self._gone = asyncio.Event()
        self._closed = False

    async def connected(self) -> Link:
        """The current link, or the next one. The caller bounds the wait."""
        if self.current is not None:
            return self.current
        self.begin()
        waiter: asyncio.Future[Link] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            return await waiter
        finally:
            if waiter in self._waiters:
                self._waiters.remove(waiter)

    def begin(self) -> None:
        """Connect, unless that is under way."""
        if self._closed:
            raise Closed("the lane is closed")
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._keep())

    def retire(self, link: Link) -> None:
        """Nothing new on this link: look for another one. It ends by itself, when the node closes it."""
        if self.current is link:
            self.current = None
            self._gone.set()

    # --- connecting ---------------------------------------------------------------------------------------------------

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        failures = 0
        while True:
            try:
                link = await self._attempt()
            except Unavailable as error:
                if not failures:
                    log.info("no node can be reached", cause=str(error))
                self.trouble, self.crowded = str(error), error if isinstance(error, TooManyConnections) else None
                failures += 1
            except SealaneError as error:
                self._refused(error)
                return
            except Exception as error:
                log.exception("connecting failed unexpectedly")
                self.trouble = f"connecting failed unexpectedly: {error!r}"
                failures += 1
            else:
                came = loop.time()
                self._adopt(link)
                await self._gone.wait()
                failures = 0 if loop.time() - came >= STEADY_SECONDS else failures + 1
            await asyncio.sleep(self._pause_seconds(failures))

    async def _attempt(self) -> Link:
        endpoints, problems = await resolve(self._addresses, self._entropy)
        try:
            return await first_to_answer(endpoints, self._open)
        except TooManyConnections:
            raise
        except Unavailable as error:
            raise Unavailable("; ".join([*problems, str(error)] if endpoints else problems)) from None

    async def _open(self, endpoint: Endpoint) -> Link:
        link = Link(endpoint.address, self._hello, self._credentials.show(), self._scratch, self)
        return await open_link(link, endpoint, self._tls)

    def _pause_seconds(self, failures: int) -> float:
        longest = min(BACK_OFF_SECONDS_MIN * 2.0 ** min(failures, 16), BACK_OFF_SECONDS_MAX)
        return longest * (0.5 + int.from_bytes(self._entropy(2), "big") / 131_072)

    def _adopt(self, link: Link) -> None:
        self._gone.clear()
        if not link.takes_requests:
            # It was lost, or began to drain, between its handshake and now.
            self.trouble = str(link.error or f"{link.address} is about to stop")
            self._gone.set()
            return
        self._generation += 1
        link.generation = self._generation
        self.links[link.generation] = link
        self.current, self.welcome, self.trouble = link, link.welcome, None
        self.crowded = None
        if link.generation > 1:
            log.info("connected again", address=str(link.address), generation=link.generation)
        for user in list(self.users):
            user.linked(link)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(link)

    def _refused(self, error: SealaneError) -> None:
        """Trying again cannot help; whoever asks next causes one more attempt."""
        log.warning("the node refuses this client", cause=str(error))
        self._task = None
        self.trouble = str(error)
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_exception(error)
        for user in list(self.users):
            user.failed(error)

    # --- what links tell ----------------------------------------------------------------------------------------------

    def heard(self, link: Link, message: Any, body: memoryview) -> None:
        consumer = self.consumers.get(message.consumer)
        if consumer is not None:
            consumer.heard(link, message, body)

    def writable(self, link: Link) -> None:
        for user in list(self.users):
            user.writable(link)

    def draining(self, link: Link) -> None:
        if self.links.get(link.generation) is not link:
            return
        self.trouble = f"the node at {link.address} is stopping"
        log.info("the node is about to stop", address=str(link.address))
        self.retire(link)
        for user in list(self.users):
            user.draining(link)

    def lost(self, link: Link, error: SealaneError) -> None:
        if self.links.get(link.generation) is not link:
            return
        del self.links[link.generation]
        if not self._closed:
            log.info("a connection was lost", address=str(link.address), cause=str(error))
            self.trouble = self.trouble or str(error)
        self.retire(link)
        for user in list(self.users):
            user.lost(link)

    # --- the end ------------------------------------------------------------------------------------------------------

    async def close(self, *, seconds: float) -> None:
        """Say goodbye on every link, and wait for the sockets to close, but no longer than that."""
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
            self._task = None
        closed = Closed("the lane is closed")
        for waiter in self._waiters:
            if not waiter.done():
                waiter.set_exception(closed)
        for user in list(self.users):
            user.failed(closed)
        links = list(self.links.values())
        for link in links:
            link.close()
        if links and not await _all_closed(links, seconds):
            for link in links:
                link.abort()
            await _all_closed(links, 1.0)


async def _all_closed(links: list[Link], seconds: float) -> bool:
    _, pending = await asyncio.wait([link.closed for link in links], timeout=seconds)
    return not pending
