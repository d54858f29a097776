"""Whoever asks: what they may do, and what is written down of it. The commands themselves are in `session.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from sealane.errors import Forbidden
from sealane.message import OPEN_SYSTEM_TOPICS, Limits, check_name, split_topic
from sealane.node.audit_folding import NOWHERE, Happening, Origin
from sealane.node.node import Node
from sealane.node.staging.logs import STAGED
from sealane.prompt import Prompt
from sealane.security.audit.entries import Outcome
from sealane.security.principals import Action, Principal

T = TypeVar("T")

Details = Mapping[str, str | int]


class Asking:
    """One principal at a node, wherever it came in."""

    def __init__(self, node: Node, principal: Principal, origin: Origin = NOWHERE) -> None:
        self._node = node
        self.principal = principal
        self.origin = origin

    @property
    def limits(self) -> Limits:
        return self._node.settings.limits

    # --- what they may do ---------------------------------------------------------------------------------------------

    def authorise(self, action: Action, resource: str) -> None:
        """Raise `Forbidden` unless the principal may do this to `domain/name`, and `Unauthenticated` once its
        credential is over.
        """
        self._node.identity.check(self.principal)
        try:
            self._node.identity.grants.authorise(self.principal, action, resource)
        except Forbidden as refusal:
            raise self.refused(refusal) from None

    def refused(self, refusal: Forbidden) -> Forbidden:
        """The refusal, which is in the audit log now."""
        _ = self.note("forbidden", refusal.resource, {"action": refusal.action}, "refused")
        return refusal

    def may(self, action: Action, resource: str) -> bool:
        """The same as an answer, of which nothing is written down. Raises `Unauthenticated`."""
        self._node.identity.check(self.principal)
        return self._node.identity.grants.allows(self.principal, action, resource)

    def may_see(self, resource: str) -> bool:
        """Whether the principal may do anything to it: of the rest they are not even told that it is there."""
        self._node.identity.check(self.principal)
        return self._node.identity.grants.allows_any(self.principal, resource)

    def allow(self, action: Action, name: str, *, of_system: bool = False) -> str:
        """The full name, if the principal may do this to it. `of_system`: to what is the system's too."""
        domain, bare = split_topic(name, self.principal.domain)
        # The system's names are for reading, but for those that jobs write.
        is_open = action == "publish" and f"{domain}/{bare}" in OPEN_SYSTEM_TOPICS
        of_system = of_system or action == "consume" or is_open
        if bare == STAGED and action == "consume":
            action = "admin"  # What is staged is not published: it is not for those who read all of a domain.
        if not of_system and (bare.startswith("_") or domain.startswith("_")):
            self._check_names(domain, bare, of_system=False)
        full_name = f"{domain}/{bare}"
        if not self.may(action, full_name):
            self._check_names(domain, bare, of_system=of_system)  # What cannot be a name is no matter of grants.
            self.authorise(action, full_name)
        return full_name

    def allow_member(self) -> None:
        """Raise `Forbidden` if the principal has no grant at all: it is told nothing, then."""
        self._node.identity.check(self.principal)
        if not self._node.identity.grants.of(self.principal):
            self.authorise("publish", f"{self.principal.domain}/*")

    def _check_names(self, domain: str, bare: str, *, of_system: bool) -> None:
        check_name("domain", domain, self.limits, system=of_system)
        check_name("topic", bare, self.limits, system=of_system)

    # --- what is written down -----------------------------------------------------------------------------------------

    def note(
        self, event: str, resource: str = "", details: Details | None = None, outcome: Outcome = "ok"
    ) -> Prompt[None]:
        """Write down that this principal did it, or was refused; done when that is durable."""
        return self._node.audit.record(self._happening(event, resource, details, outcome))

    async def noted(self, event: str, resource: str = "", details: Details | None = None) -> None:
        """The same, and return when it is durable."""
        await self.note(event, resource, details)

    def looked(self, event: str, resource: str, details: Details | None = None) -> None:
        """Write down that this principal read what is for administrators."""
        self._node.audit.looked(self._happening(event, resource, details))

    async def recorded(self, event: str, resource: str, work: Awaitable[T], details: Details | None = None) -> T:
        """Change something, and return when it is in the audit log too."""
        try:
            outcome = await work
        except asyncio.CancelledError:
            # What was begun may be done by now, or half of it.
            _ = self.note(event, resource, {**(details or {}), "interrupted": 1})
            raise
        await self.note(event, resource, details)
        return outcome

    @contextmanager
    def noting_new(self, *topics: str) -> Iterator[None]:
        """Write down which of the topics come to be meanwhile, by being used; nobody waits for that."""
        missing = [name for name in topics if name not in self._node.topics]
        try:
            yield
        finally:
            for name in missing:
                if name in self._node.topics:
                    _ = self.note("topic.create", name, {"by": "use"})

    def _happening(self, event: str, resource: str, details: Details | None, outcome: Outcome = "ok") -> Happening:
        return Happening.of(event, self.principal, outcome, resource, self.origin, details or {})
