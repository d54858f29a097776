"""The one gate: whoever comes in by whatever door is authenticated here, and leaves with a `Session`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from sealane.node.node import Node
from sealane.node.principals import ADMIN, Principal
from sealane.node.session import Session
from sealane.node.supervision import Supervisor

Credentials = Mapping[str, Any]
Authenticate = Callable[[Credentials | None], Principal]


def everyone_is_admin(credentials: Credentials | None) -> Principal:
    """How a node without authentication (`--insecure`) takes everyone."""
    return ADMIN


class Gate:
    """What doors are given: they reach the node behind it through sessions only."""

    def __init__(self, node: Node, authenticate: Authenticate) -> None:
        self._node = node
        self._authenticate = authenticate

    @property
    def supervisor(self) -> Supervisor:
        """Hears of what crashes in a door's background too."""
        return self._node.supervisor

    def enter(self, credentials: Credentials | None) -> Session:
        """A session for whoever shows these credentials. Raises `Unauthenticated`."""
        return Session(self._node, self._authenticate(credentials))

    def refused(self, error: BaseException) -> None:
        """A door has answered with this error: it is counted by its class."""
        self._node.measures.refused(error)
