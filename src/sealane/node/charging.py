"""What a principal's quotas allow: asked before anything is done, by the request and by the message."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from sealane.errors import RateLimited
from sealane.message import Batch
from sealane.node.asking import Asking
from sealane.node.audit_folding import NOWHERE, Origin
from sealane.node.node import Node
from sealane.security.principals import Principal

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S", bound="Charging")


def counted(
    command: Callable[Concatenate[S, P], Awaitable[T]],
) -> Callable[Concatenate[S, P], Coroutine[Any, Any, T]]:
    """A command that counts as a request: refused, before it begins, where the principal's quota is used up."""

    @wraps(command)
    async def asked(session: S, /, *args: P.args, **options: P.kwargs) -> T:
        if session._allowance.limited:
            session._charge()
        return await command(session, *args, **options)

    return asked


class Charging(Asking):
    """One principal at a node, and what is left to it of its quotas."""

    def __init__(self, node: Node, principal: Principal, origin: Origin = NOWHERE) -> None:
        super().__init__(node, principal, origin)
        self._allowance = node.identity.quotas.allowance(principal, node.measures.now())

    def _charge(self, batches: Sequence[Batch] = ()) -> None:
        """Raise `RateLimited` if a quota is used up; asked where `_allowance.limited`, before anything is done."""
        messages = sum(map(len, batches))
        bytes_count = sum(batch.nbytes for batch in batches)
        try:
            self._allowance.charge(self._node.measures.now(), messages=messages, bytes_count=bytes_count)
        except RateLimited as error:
            self._node.measures.rate_limited(error)
            _ = self.note("rate-limited", outcome="refused", details={"subject": error.subject, "what": error.what})
            raise
