"""Where a webhook points: a URL, read so strictly that no two programs could disagree about the host in it.

Nothing else reads the text: what is checked here is what is connected to. A host that could be read in two ways (a
number for an address, a name with letters beyond ASCII, a user in front of it) is none.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

from sealane.errors import InvalidArgument

URL_CHARS_MAX = 2_048
"""Of a webhook's URL: what every server on the way takes."""
HOST_CHARS_MAX = 253
"""Of a host's name, as DNS has it."""

Address = IPv4Address | IPv6Address
Host = str | Address
"""A name in small letters without a dot at its end, or an address."""

_PORTS = {"https": 443, "http": 80}
_URL = re.compile(r"(?P<scheme>[A-Za-z]+)://(?P<authority>[^/?]+)(?P<target>(?:/[^?]*)?(?:\?.*)?)", re.ASCII)
_AUTHORITY = re.compile(r"(?:\[(?P<v6>[0-9A-Fa-f:.]+)\]|(?P<host>[^:\[\]]+))(?::(?P<port>[0-9]{1,5}))?", re.ASCII)
_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
_NOT_IN_URLS = frozenset('"<>\\^`{|}#')


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A URL in its parts."""

    scheme: str
    """`https` or `http`."""
    host: Host
    port: int
    target: str
    """Path and query, as they are sent."""

    @property
    def authority(self) -> str:
        """As it is sent as `Host`."""
        host = f"[{self.host}]" if isinstance(self.host, IPv6Address) else str(self.host)
        return host if self.port == _PORTS[self.scheme] else f"{host}:{self.port}"


def read_url(text: str) -> Endpoint:
    """Raises `InvalidArgument`, in which the URL is not repeated: it may hold a secret of the receiver's."""
    if len(text) > URL_CHARS_MAX:
        raise _refused(f"it has {len(text):,} characters, the limit is {URL_CHARS_MAX:,}")
    if not text.isascii():
        raise _refused("it has letters beyond ASCII; write its host in the form xn--…, and the rest as %XX")
    if any(not "!" <= char <= "~" or char in _NOT_IN_URLS for char in text):
        raise _refused("it has a space, a fragment (#) or another character that a URL has as %XX only")
    parts = _URL.fullmatch(text)
    if parts is None:
        raise _refused("it is no URL such as https://hooks.example.com/orders")
    scheme = parts["scheme"].lower()
    if scheme not in _PORTS:
        raise _refused(f"its scheme is {scheme!r}; it must be https")
    if "@" in parts["authority"]:
        raise _refused("it has a user or a password in front of its host, which a webhook cannot use")
    place = _AUTHORITY.fullmatch(parts["authority"])
    if place is None:
        raise _refused("what stands between // and / is no host, with or without a port")
    port = int(place["port"]) if place["port"] else _PORTS[scheme]
    if not 1 <= port <= 65_535:
        raise _refused(f"{port} is no port")
    host = _read_v6(place["v6"]) if place["v6"] else read_host(place["host"])
    target: str = parts["target"]
    return Endpoint(scheme, host, port, target if target.startswith("/") else f"/{target}")


def read_host(text: str) -> Host:
    """A name, or an IPv4 address in the one form that has four decimal numbers. Raises `InvalidArgument`."""
    name = text.lower().removesuffix(".")
    if not name.isascii():
        raise InvalidArgument("host", f"{text!r} has letters beyond ASCII; write it in the form xn--…")
    labels = name.split(".")
    if len(name) > HOST_CHARS_MAX or not all(map(_LABEL.fullmatch, labels)):
        raise InvalidArgument("host", f"{text[:HOST_CHARS_MAX]!r} is no name of a host")
    if _NUMBER.fullmatch(labels[-1]) is None:
        return name
    # Some programs read 2130706433, 0x7f.1 and 0177.0.0.1 as 127.0.0.1, others do not.
    try:
        return IPv4Address(name)
    except ValueError:
        problem = f"{text!r} ends in a number and is no address of four decimal numbers, such as 192.0.2.1"
        raise InvalidArgument("host", problem) from None


def _read_v6(text: str) -> IPv6Address:
    try:
        return IPv6Address(text)
    except ValueError:
        raise _refused(f"{text!r} is no address of IPv6") from None


def _refused(problem: str) -> InvalidArgument:
    return InvalidArgument("url", problem)
