"""Who is inside: every connection by its principal, so that those whose credential ends can be shown out at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sealane.errors import Unauthenticated
from sealane.security.principals import Principal

ShowOut = Callable[[Unauthenticated], None]
"""Ends a connection, and tells its client why. It does not raise, and may be called for one that has ended."""


@dataclass(frozen=True, slots=True, eq=False)
class Entrance:
    """One who came in; `Entrances.left` is told when they leave."""

    principal: Principal
    address: str
    show_out: ShowOut


class Entrances:
    def __init__(self) -> None:
        self._inside: dict[Entrance, None] = {}

    def __len__(self) -> int:
        return len(self._inside)

    def came(self, principal: Principal, address: str, show_out: ShowOut) -> Entrance:
        entrance = Entrance(principal, address, show_out)
        self._inside[entrance] = None
        return entrance

    def left(self, entrance: Entrance) -> None:
        """Nothing happens if they had left."""
        self._inside.pop(entrance, None)

    def show_out(self, over: Callable[[Principal], bool], why: str) -> int:
        """End every connection of principals of which `over` is true. Returns how many those were."""
        leaving = [entrance for entrance in self._inside if over(entrance.principal)]
        for entrance in leaving:
            self.left(entrance)
            entrance.show_out(Unauthenticated(why))
        return len(leaving)
