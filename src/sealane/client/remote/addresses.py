"""Where nodes are: URLs as users write them, and the network addresses behind their names."""

from __future__ import annotations

import asyncio
import ipaddress
import re
import socket
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sealane.errors import InvalidArgument, Unavailable

PORT_DEFAULT = 7070
SCHEME = "sealane"
SCHEME_TLS = "sealanes"
PORT_MAX = 65_535
"""As TCP has it."""

_HOST = re.compile(r"(?:\[(?P<v6>[^\[\]]+)\]|(?P<name>[^\[\]:]+))(?::(?P<port>[^:]*))?")


class Address(NamedTuple):
    """A host, by name or number, and a port."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class Endpoint(NamedTuple):
    """A numeric address, and the name by which the user knows it: the one that a certificate there must be for."""

    address: Address
    name: str

    def __str__(self) -> str:
        return str(self.address)


class Nodes(NamedTuple):
    """What URLs name."""

    addresses: tuple[Address, ...]
    tls: bool
    """Whether they say `sealanes://`."""

    @property
    def url(self) -> str:
        """All of them in one."""
        return f"{SCHEME_TLS if self.tls else SCHEME}://{','.join(map(str, self.addresses))}"


def parse_urls(urls: str | Sequence[str]) -> Nodes:
    """The addresses that these URLs name, each once: `sealanes://h1:7070,h2`, or several of them.

    Raises `InvalidArgument` for what is not one, and if some of them ask for TLS and others do not.
    """
    given = [urls] if isinstance(urls, str) else list(urls)
    addresses: dict[Address, None] = {}
    schemes: dict[str, None] = {}
    for url in given:
        if not isinstance(url, str):
            raise InvalidArgument("url", f"must be text such as 'sealanes://127.0.0.1:7070', not {type(url).__name__}")
        scheme, found = _parse(url.strip())
        schemes[scheme] = None
        addresses.update(dict.fromkeys(found))
    if not addresses:
        raise InvalidArgument("url", "none was given; 'sealanes://127.0.0.1:7070' is one")
    if len(schemes) > 1:
        problem = "'sealane://' (plain text) and 'sealanes://' (TLS) cannot be mixed: what goes to one goes to all"
        raise InvalidArgument("url", problem)
    return Nodes(tuple(addresses), SCHEME_TLS in schemes)


def _parse(url: str) -> tuple[str, list[Address]]:
    scheme, separator, rest = url.partition("://")
    if "@" in url:
        # What stands before the sign may be a secret, so the URL is not repeated.
        raise InvalidArgument("url", "a URL carries no user or password; leave out what stands before the '@'")
    if not separator:
        raise InvalidArgument("url", f"{url!r} has no scheme; write 'sealane://{url or '127.0.0.1:7070'}'")
    if scheme not in (SCHEME, SCHEME_TLS):
        raise InvalidArgument("url", f"scheme {scheme!r} is not known; write 'sealanes://host:port'")
    return scheme, [_parse_host(host.strip(), url) for host in rest.removesuffix("/").split(",")]


def is_loopback(host: str) -> bool:
    """Whether what is sent there stays on this machine."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _parse_host(text: str, url: str) -> Address:
    match = _HOST.fullmatch(text)
    if match is None or re.search(r"[\s/?#%]", text):
        problem = f"{text!r} in {url!r} is not a host with an optional port; IPv6 goes in brackets: '[::1]:7070'"
        raise InvalidArgument("url", problem)
    host = match["name"] or _checked_v6(match["v6"], url)
    port = match["port"]
    if port is None:
        return Address(host, PORT_DEFAULT)
    if not port.isascii() or not port.isdigit() or not 0 < int(port) <= PORT_MAX:
        raise InvalidArgument("url", f"port {port!r} in {url!r} is not a number from 1 to {PORT_MAX}")
    return Address(host, int(port))


def _checked_v6(text: str, url: str) -> str:
    try:
        return str(ipaddress.IPv6Address(text))
    except ValueError:
        raise InvalidArgument("url", f"'[{text}]' in {url!r} is not an IPv6 address") from None


async def resolve(addresses: Sequence[Address], entropy: Callable[[int], bytes]) -> tuple[list[Endpoint], list[str]]:
    """Where these are, as names are known now, each once, in a random order; and what could not be resolved.

    Random, so that many clients spread over the nodes, and one that is dead is not everyone's first.
    """
    found: dict[Address, Endpoint] = {}
    problems: list[str] = []
    for outcome in await asyncio.gather(*(_resolve_one(address) for address in addresses), return_exceptions=True):
        if isinstance(outcome, Unavailable):
            problems.append(str(outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            for endpoint in outcome:
                found.setdefault(endpoint.address, endpoint)
    return sorted(found.values(), key=lambda _: entropy(4)), problems


async def _resolve_one(address: Address) -> list[Endpoint]:
    if _is_number(address.host):
        return [Endpoint(address, address.host)]
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unavailable(f"{address}: the name cannot be resolved ({reason})") from None
    return [Endpoint(Address(str(sockaddr[0]), address.port), address.host) for _, _, _, _, sockaddr in infos]


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
