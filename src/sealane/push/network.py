"""Connections to receivers: the address is checked after its name was resolved, and is the one that is connected to.

A check of the name alone would be of no use: between the check and the connection the name may come to mean another
address. Here there is nothing in between.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from ipaddress import ip_address

import httpcore

from sealane.errors import WebhookRefused
from sealane.node.webhooks.endpoints import Address, Host
from sealane.node.webhooks.hosts import AllowedHosts, is_loopback

ADDRESSES_MAX = 8
"""Addresses of one name that are tried, one after the other."""
RESOLVERS_MAX = 8
"""Names that are looked up at a time: a name server that does not answer holds up webhooks alone."""

Resolve = Callable[[str], Awaitable[Sequence[Address]]]
"""The addresses of a name, best first. Raises `OSError`."""
Check = Callable[[Host, Address], None]
"""Raises `WebhookRefused` for an address that must not be connected to."""


class SystemResolver:
    """Asks as every program of this machine does, on threads of its own."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVERS_MAX, thread_name_prefix="webhook-names")

    async def __call__(self, name: str) -> list[Address]:
        loop = asyncio.get_running_loop()
        found = await loop.run_in_executor(self._threads, _look_up, name)
        return [ip_address(address) for address in dict.fromkeys(found)]

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)


def _look_up(name: str) -> list[str]:
    found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    return [str(place[0]) for *_, place in found]


class CheckedNetwork(httpcore.AsyncNetworkBackend):
    """Connects to addresses that pass the check, and to no others."""

    def __init__(self, resolve: Resolve, check: Check) -> None:
        self._resolve = resolve
        self._check = check
        self._network = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """`timeout` is for all of it: looking the name up, and trying each of its addresses."""
        try:
            async with asyncio.timeout(timeout):
                problem: Exception | None = None
                for address in await self._addresses(host):
                    try:
                        return await self._network.connect_tcp(str(address), port, None, None, socket_options)
                    except httpcore.ConnectError as error:
                        problem = error
                raise problem or httpcore.ConnectError("its name has no address")
        except TimeoutError:
            raise httpcore.ConnectTimeout("no connection in time") from None

    async def _addresses(self, host: str) -> list[Address]:
        """Those that may be connected to. Raises `WebhookRefused` if there are some, and none of them may."""
        try:
            found: Sequence[Address] = [ip_address(host)]
        except ValueError:
            try:
                found = await self._resolve(host)
            except OSError as error:
                raise httpcore.ConnectError(f"its name cannot be looked up: {error.strerror or error}") from None
        allowed: list[Address] = []
        refusal: WebhookRefused | None = None
        for address in found[:ADDRESSES_MAX]:
            try:
                self._check(host, address)
            except WebhookRefused as error:
                refusal = error
            else:
                allowed.append(address)
        if refusal is not None and not allowed:
            raise refusal
        return allowed

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        raise WebhookRefused(path, "a webhook goes to a host, not to a socket of this machine")

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


def public_or_listed(hosts: AllowedHosts) -> Check:
    """For https."""
    return hosts.check_address


def loopback_and_listed(hosts: AllowedHosts) -> Check:
    """For http, which nobody but this machine itself may see."""

    def check(host: Host, address: Address) -> None:
        if not is_loopback(address):
            raise WebhookRefused(str(host), f"its address {address} is not of this machine, and http goes nowhere else")
        hosts.check_address(host, address)

    return check
