"""Transactions: publishes and acks that take effect together, once under an id that the client chooses."""

from __future__ import annotations

from typing import Annotated

import msgspec
from fastapi import APIRouter, Path, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer
from sealane.doors.http.api.pulling import ids_of
from sealane.doors.http.authenticating import session_of
from sealane.doors.http.message_shape import GivenMessage, batch_of
from sealane.errors import InvalidArgument, LeaseLost, LimitExceeded, TransactionAborted
from sealane.node.outgoing import Outgoing
from sealane.node.session import Session
from sealane.node.transactions import TRANSACTION_ID_CHARS_MAX

TRANSACTION_PARTS_MAX = 1_000
"""Publishes and acks of one transaction: each is checked while others wait."""

routes = APIRouter(prefix="/transactions", tags=["transactions"])

TransactionId = Annotated[str, Path(min_length=1, max_length=TRANSACTION_ID_CHARS_MAX)]


@routes.put(
    "/{transaction}",
    summary="Publish and acknowledge together, once",
    responses=describing.answers(200, shapes.TransactionOutcome, also=(409, 413, 429)),
)
async def transact(
    request: Request, domain: shapes.PathName, transaction: TransactionId, order: shapes.TransactionOrder
) -> Response:
    """All of it takes effect or nothing does. Sent again under the same id it changes nothing, and says so.

    Ids belong to the principal's own domain, which is the one in the path.
    """
    session = await session_of(request)
    _check_domain(session, domain)
    if (parts := len(order.publishes) + len(order.acks)) > TRANSACTION_PARTS_MAX:
        raise LimitExceeded("transaction", TRANSACTION_PARTS_MAX, parts, unit="parts", setting="none changes it")
    outgoing = Outgoing(session.limits, session.surroundings)
    publishes = [(each.topic, batch_of(_given(each), outgoing)) for each in order.publishes]
    try:
        acks = [
            leased
            for each in order.acks
            for leased in await (await session.held(each.topic, each.subscription, each.lease)).leased(ids_of(each.ids))
        ]
    except LeaseLost as lost:
        # If the answer to a first request was lost, this one repeats what is done.
        if await session.is_transaction_done(transaction):
            return answer({"transaction": transaction, "done": True, "repeated": True})
        raise TransactionAborted(transaction, str(lost)) from lost
    done_now = await session.transact(transaction, publishes, acks)
    return answer({"transaction": transaction, "done": True, "repeated": not done_now})


@routes.get(
    "/{transaction}",
    summary="Whether a transaction is done",
    responses=describing.answers(200, shapes.TransactionOutcome),
)
async def show_transaction(request: Request, domain: shapes.PathName, transaction: TransactionId) -> Response:
    session = await session_of(request)
    _check_domain(session, domain)
    return answer(
        {"transaction": transaction, "done": await session.is_transaction_done(transaction), "repeated": False}
    )


def _check_domain(session: Session, domain: shapes.PathName) -> None:
    if domain != session.principal.domain:
        own = session.principal.domain
        raise InvalidArgument("domain", f"transactions of {session.principal.name!r} are in {own!r}, not in {domain!r}")


def _given(publish: shapes.TransactionPublish) -> list[GivenMessage]:
    try:
        return msgspec.convert(publish.model_dump(exclude_none=True)["messages"], list[GivenMessage])
    except msgspec.ValidationError as error:
        raise InvalidArgument(f"messages for {publish.topic!r}", str(error)) from None
