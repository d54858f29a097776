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


def parse_urls(urls: str | Sequence[str]) -> tuple[Address, ...]:
    """The addresses that these URLs name, each once: `sealane://h1:7070,h2`, or several of them.

    Raises `InvalidArgument` for what is not one.
    """
    given = [urls] if isinstance(urls, str) else list(urls)
    addresses: dict[Address, None] = {}
    for url in given:
        if not isinstance(url, str):
            raise InvalidArgument("url", f"must be text such as 'sealane://127.0.0.1:7070', not {type(url).__name__}")
        addresses.update(dict.fromkeys(_parse(url.strip())))
    if not addresses:
        raise InvalidArgument("url", "none was given; 'sealane://127.0.0.1:7070' is one")
    return tuple(addresses)


def _parse(url: str) -> list[Address]:
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise InvalidArgument("url", f"{url!r} has no scheme; write 'sealane://{url or '127.0.0.1:7070'}'")
    if scheme == SCHEME_TLS:
        problem = "'sealanes://' (TLS) needs identities, which this version does not have yet; use 'sealane://'"
        raise InvalidArgument("url", problem)
    if scheme != SCHEME:
        raise InvalidArgument("url", f"scheme {scheme!r} is not known; write 'sealane://host:port'")
    if "@" in rest:
        # What stands before the sign may be a secret, so the URL is not repeated.
        raise InvalidArgument("url", "a URL carries no user or password; leave out what stands before the '@'")
    return [_parse_host(host.strip(), url) for host in rest.removesuffix("/").split(",")]


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


async def resolve(addresses: Sequence[Address], entropy: Callable[[int], bytes]) -> tuple[list[Address], list[str]]:
    """The numeric addresses behind these, as names are known now, in a random order; and what could not be resolved.

    Random, so that many clients spread over the nodes, and one that is dead is not everyone's first.
    """
    found: dict[Address, None] = {}
    problems: list[str] = []
    for outcome in await asyncio.gather(*(_resolve_one(address) for address in addresses), return_exceptions=True):
        if isinstance(outcome, Unavailable):
            problems.append(str(outcome))
        elif isinstance(outcome, BaseException):
            raise outcome
        else:
            found.update(dict.fromkeys(outcome))
    return sorted(found, key=lambda _: entropy(4)), problems


async def _resolve_one(address: Address) -> list[Address]:
    if _is_number(address.host):
        return [address]
    loop = asyncio.get_running_loop()
    try:
        infos = await loop.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise Unavailable(f"{address}: the name cannot be resolved ({reason})") from None
    return [Address(str(sockaddr[0]), address.port) for _, _, _, _, sockaddr in infos]


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
