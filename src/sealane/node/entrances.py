"""Who is at the doors: every connection by its address, and by its principal once that is known.

Connections are counted from their first moment, so that many half-open ones from one address are found out too; and
those whose credential ends can be shown out at once.
"""

from __future__ import annotations

import ipaddress
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sealane.errors import TooManyConnections, Unauthenticated
from sealane.security.principals import Principal
from sealane.security.quotas.quotas import Quotas
from sealane.security.settings import QuotaSettings

ShowOut = Callable[[Unauthenticated], None]
"""Ends a connection, and tells its client why. It does not raise, and may be called for one that has ended."""

Crowded = Literal["address", "principal"]
"""Of what there were too many."""

ADDRESS_SETTING = "security.quotas.connections_per_address_max"
PRINCIPAL_SETTING = "security.quotas.connections_per_principal_max, or `sealane quota set principal` with --connections"

_V6_NETWORK_BITS = 64


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """One who came in; `Entrances.left` is told when they leave."""

    principal: Principal
    address: str
    show_out: ShowOut


class Entrances:
    """One a node: all doors that keep connections count here."""

    def __init__(self, settings: QuotaSettings, quotas: Quotas, crowded: Callable[[Crowded], None]) -> None:
        """`crowded` is told of each connection that is one too many."""
        self._address_max = settings.connections_per_address_max
        self._quotas = quotas
        self._crowded = crowded
        self._inside: dict[Entrance, None] = {}
        self._at_the_door: Counter[str] = Counter()
        """By network: connections, whoever they are of."""
        self._of_principal: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._inside)

    # --- connections, before anybody knows whose they are -------------------------------------------------------------

    def arrived(self, address: str) -> None:
        """A connection was made from this host; `departed` is told when it ends. Raises `TooManyConnections`, and does
        not count it then.
        """
        network = network_of(address)
        if self._at_the_door[network] >= self._address_max:
            self._crowded("address")
            raise TooManyConnections(f"from {network or 'nowhere'}", self._address_max, ADDRESS_SETTING)
        self._at_the_door[network] += 1

    def departed(self, address: str) -> None:
        """For each that `arrived`, once."""
        network = network_of(address)
        self._at_the_door[network] -= 1
        if self._at_the_door[network] <= 0:
            del self._at_the_door[network]

    def connections_from(self, address: str) -> int:
        return self._at_the_door[network_of(address)]

    # --- principals ---------------------------------------------------------------------------------------------------

    def came(self, principal: Principal, address: str, show_out: ShowOut) -> Entrance:
        """Raises `TooManyConnections` if the principal has as many as it may have."""
        limit = self._quotas.connections_max(principal)
        if limit is not None and self._of_principal[principal.name] >= limit:
            self._crowded("principal")
            raise TooManyConnections(f"of {principal.name!r}", limit, PRINCIPAL_SETTING)
        entrance = Entrance(principal, address, show_out)
        self._inside[entrance] = None
        self._of_principal[principal.name] += 1
        return entrance

    def left(self, entrance: Entrance) -> None:
        """Nothing happens if they had left."""
        if entrance in self._inside:
            del self._inside[entrance]
            name = entrance.principal.name
            self._of_principal[name] -= 1
            if not self._of_principal[name]:
                del self._of_principal[name]

    def connections_of(self, principal: str) -> int:
        return self._of_principal[principal]

    def show_out(self, over: Callable[[Principal], bool], why: str) -> int:
        """End every connection of principals of which `over` is true. Returns how many those were."""
        leaving = [entrance for entrance in self._inside if over(entrance.principal)]
        for entrance in leaving:
            self.left(entrance)
            entrance.show_out(Unauthenticated(why))
        return len(leaving)


def network_of(address: str) -> str:
    """What counts as one address: a machine has one of IPv4, and of IPv6 as many as it likes within 64 bits."""
    if ":" not in address:
        return address
    try:
        found = ipaddress.IPv6Address(address.partition("%")[0])
    except ValueError:
        return address
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.IPv6Network((found, _V6_NETWORK_BITS), strict=False))
