"""The one gate: whoever comes in by whatever door is authenticated here, and leaves with a `Session`."""

from __future__ import annotations

from sealane.node.entrances import Entrances
from sealane.node.node import Node
from sealane.node.session import Session
from sealane.node.supervision import Supervisor
from sealane.security.introductions import Authenticate, Introduction
from sealane.security.principals import ADMIN, Principal


async def everyone_is_admin(shown: Introduction) -> Principal:
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

    @property
    def entrances(self) -> Entrances:
        """Where doors that keep connections note who is inside."""
        return self._node.entrances

    async def enter(self, shown: Introduction) -> Session:
        """A session for whoever introduces themselves so. Raises `Unauthenticated`."""
        return Session(self._node, await self._authenticate(shown))

    def refused(self, error: BaseException) -> None:
        """A door has answered with this error: it is counted by its class."""
        self._node.measures.refused(error)
