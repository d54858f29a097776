"""The one gate: whoever comes in by whatever door is authenticated here, and leaves with a `Session`."""

from __future__ import annotations

from sealane.errors import Unauthenticated
from sealane.node.audit_folding import Origin
from sealane.node.auditing import AUTHENTICATION
from sealane.node.entrances import Entrances
from sealane.node.identity import CREDENTIAL_OVER
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
        origin = Origin(shown.address, shown.door)
        try:
            principal = await self._authenticate(shown)
        except Unauthenticated as refusal:
            self._note_refusal(shown, refusal)
            raise
        session = Session(self._node, principal, origin)
        _ = session.note(AUTHENTICATION, details={"kind": principal.kind})
        return session

    def _note_refusal(self, shown: Introduction, refusal: Unauthenticated) -> None:
        """What a stranger says of themselves is written down only where it is the name of an account: people type
        passwords where a name is asked.
        """
        credentials = shown.credentials or {}
        claimed = credentials.get("user")
        known = isinstance(claimed, str) and self._node.identity.accounts.find(claimed) is not None
        ways = sorted(name for name in ("key", "token", "user") if name in credentials)
        _ = self._node.audit.note(
            AUTHENTICATION,
            principal=None,
            outcome="refused",
            address=shown.address,
            door=shown.door,
            shown=", ".join([*ways, *(["certificate"] if shown.certificate else [])]) or "nothing",
            reason=str(refusal),
            **({"claimed": str(claimed)} if known else {}),
        )

    def show_out(self) -> None:
        """End the connections of those whose credential is over. Doors that keep connections call it every second."""
        self._node.entrances.show_out(self._node.identity.is_over, CREDENTIAL_OVER)

    def handshake_refused(self, door: str) -> None:
        """A connection did not get through its TLS handshake."""
        self._node.measures.handshakes_refused[door] += 1

    def refused(self, error: BaseException) -> None:
        """A door has answered with this error: it is counted by its class."""
        self._node.measures.refused(error)
