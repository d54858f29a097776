"""A transaction in a `with` block: publishes and acks, gathered, and committed when the block ends well."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from sealane.client.sync.portal import Portal
from sealane.client.transaction import Transaction

P = ParamSpec("P")
R = TypeVar("R")


def _blocking(
    method: Callable[Concatenate[Transaction, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[SyncTransaction, P], R]:
    @wraps(method)
    def call(self: SyncTransaction, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.portal.call(method, self.loop_side, *args, **kwargs)

    return call


class SyncTransaction:
    """Visible together, once under its id. If the block raises, nothing happens.

    `replayed` tells, after the block, that this id had been committed before and nothing was done now.
    """

    def __init__(self, portal: Portal[Any], transaction: Transaction) -> None:
        self.portal = portal
        self.loop_side = transaction

    publish = _blocking(Transaction.publish)
    publish_many = _blocking(Transaction.publish_many)
    ack = _blocking(Transaction.ack)

    @property
    def replayed(self) -> bool:
        return self.loop_side.replayed

    def __enter__(self) -> Self:
        self.portal.call(self.loop_side.__aenter__)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.portal.call(self.loop_side.__aexit__, None, None, None)
