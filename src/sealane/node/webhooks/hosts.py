"""Which hosts webhooks may be sent to: those that `webhooks.hosts` lists, and of these no address inside a network.

A name says nothing about where it leads: whoever owns it can have it lead to this machine, to the cloud's metadata or
to a neighbour, and change that at any time. So the address is asked about once more when it is connected to.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network

from sealane.errors import InvalidArgument, WebhookRefused
from sealane.node.webhooks.endpoints import Address, Host, read_host

SETTING = "webhooks.hosts"

Network = IPv4Network | IPv6Network

_GLOBAL_V6 = IPv6Network("2000::/3")
_NAT64 = IPv6Network("64:ff9b::/96")
"""The addresses of IPv4 for machines that have IPv6 alone."""


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """What `webhooks.hosts` says. Empty: webhooks are off."""

    names: frozenset[str] = frozenset()
    suffixes: tuple[str, ...] = ()
    """With the dot in front: `.example.com` takes in every name below `example.com`."""
    networks: tuple[Network, ...] = ()

    @classmethod
    def read(cls, text: str | None) -> AllowedHosts:
        """Names, `*.suffix`, addresses and networks with commas between them. Raises `InvalidArgument`."""
        names, suffixes, networks = set(), [], []
        for entry in filter(None, (part.strip() for part in (text or "").split(","))):
            if (network := _read_network(entry)) is not None:
                networks.append(network)
            elif entry.startswith("*."):
                suffixes.append("." + _read_name(entry, entry.removeprefix("*.")))
            else:
                names.add(_read_name(entry, entry))
        return cls(frozenset(names), tuple(suffixes), tuple(networks))

    def __bool__(self) -> bool:
        return bool(self.names or self.suffixes or self.networks)

    def check_host(self, host: Host) -> None:
        """Raise `WebhookRefused` unless it is listed. An address is, if a network takes it in."""
        if not self:
            raise WebhookRefused(str(host), f"webhooks are off on this node; list where they may go in {SETTING}")
        if isinstance(host, str):
            listed = host in self.names or host.endswith(self.suffixes)
        else:
            listed = self._names_address(host)
        if not listed:
            raise WebhookRefused(str(host), f"it is not among the hosts that {SETTING} lists")

    def check_address(self, host: Host, address: Address) -> None:
        """Raise `WebhookRefused` unless a connection for this host may be made to this address."""
        if not is_public(address) and not self._names_address(address):
            problem = f"its address {address} is not a public one, and no network in {SETTING} takes it in"
            raise WebhookRefused(str(host), problem)

    def _names_address(self, address: Address) -> bool:
        return any(each in network for each in (address, _carried(address)) for network in self.networks)


def is_public(address: Address) -> bool:
    """Whether it is one that the whole internet reaches by the same way."""
    address = _carried(address)
    if isinstance(address, IPv6Address) and address not in _GLOBAL_V6:
        return False  # The rest of the space is not given out.
    if isinstance(address, IPv6Address) and (address.sixtofour is not None or address.teredo is not None):
        return False  # They lead to an address of IPv4 in disguise.
    return address.is_global and not address.is_multicast and not address.is_reserved


def is_loopback(address: Address) -> bool:
    """Whether it is of this machine itself."""
    return _carried(address).is_loopback


def _carried(address: Address) -> Address:
    """The address of IPv4 that one of IPv6 stands for, where it does."""
    if isinstance(address, IPv6Address):
        if address.ipv4_mapped is not None:
            return address.ipv4_mapped
        if address in _NAT64:
            return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address


def _read_network(entry: str) -> Network | None:
    try:
        return ip_network(entry)
    except ValueError:
        if "/" in entry:
            problem = f"{entry!r} is no network such as 10.1.0.0/16, whose bits behind the prefix are 0"
            raise InvalidArgument(SETTING, problem) from None
        return None


def _read_name(entry: str, name: str) -> str:
    try:
        host = read_host(name)
    except InvalidArgument as error:
        hint = "it lists names, *.suffixes, addresses and networks, with commas between them"
        raise InvalidArgument(SETTING, f"{entry!r}: {error.problem}; {hint}") from None
    assert isinstance(host, str), "an address was read as a network"
    return host
