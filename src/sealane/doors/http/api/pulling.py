"""Pulling messages and answering for them: long polling, and the leases that it gives out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer, moment, pulled_answer
from sealane.doors.http.api.waiting import while_there
from sealane.doors.http.authenticating import session_of
from sealane.errors import InvalidArgument
from sealane.node.pulling.held import Held
from sealane.node.pulling.pull import PULL_MESSAGES_MAX, PULL_WAIT_SECONDS_MAX

routes = APIRouter(prefix="/topics/{topic}/subscriptions/{subscription}", tags=["messages"])


@routes.get(
    "/messages",
    summary="Take messages under a lease",
    responses=describing.answers(200, shapes.Pulled, arrow=True, also=(409, 429)),
)
async def pull(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    max: Annotated[int, Query(ge=1, le=PULL_MESSAGES_MAX)] = 100,
    wait: Annotated[float, Query(ge=0, le=PULL_WAIT_SECONDS_MAX)] = 0,
) -> Response:
    """What is there, or what comes first within `wait` seconds; `lease` is null if nothing did. The subscription is
    made if it is new. As Arrow, the lease is in the schema's metadata.
    """
    session = await session_of(request)
    work = session.pull(f"{domain}/{topic}", subscription, messages_max=max, wait_seconds=wait)
    return pulled_answer(request, await while_there(request, work))


@routes.post(
    "/leases/{lease}/ack", status_code=204, summary="Settle messages", responses=describing.answers(204, also=(409,))
)
async def ack(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    lease: str,
    given: shapes.Ack | None = None,
) -> Response:
    """Answered once that is durable: they are never delivered on this subscription again. Repeating it is no error."""
    held = await _held(request, f"{domain}/{topic}", subscription, lease)
    await held.ack(ids_of((given or shapes.Ack()).ids))
    return Response(status_code=204)


@routes.post(
    "/leases/{lease}/nack",
    status_code=204,
    summary="Give messages back",
    responses=describing.answers(204, also=(409,)),
)
async def nack(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    lease: str,
    given: shapes.Nack | None = None,
) -> Response:
    """As failed: they come again after `delay`, or the subscription's back-off, and die after its attempts."""
    given = given or shapes.Nack()
    held = await _held(request, f"{domain}/{topic}", subscription, lease)
    await held.nack(ids_of(given.ids), delay=given.delay, reason=given.reason)
    return Response(status_code=204)


@routes.post(
    "/leases/{lease}/extend",
    summary="Keep messages for longer",
    responses=describing.answers(200, shapes.Deadline, also=(409,)),
)
async def extend(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    lease: str,
    given: shapes.Extend,
) -> Response:
    """All of the lease, until `seconds` from now."""
    held = await _held(request, f"{domain}/{topic}", subscription, lease)
    return answer({"deadline": moment(await held.extend(given.seconds))})


async def _held(request: Request, topic: shapes.PathName, subscription: shapes.PathName, lease: str) -> Held:
    return await (await session_of(request)).held(topic, subscription, lease)


def ids_of(texts: Sequence[str] | None) -> list[UUID] | None:
    if texts is None:
        return None
    try:
        return [UUID(text) for text in texts]
    except ValueError:
        raise InvalidArgument("ids", "one of them is not a UUID") from None
