"""A topic's messages as they come: a stream of server-sent events."""

from __future__ import annotations

import asyncio
from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.authenticating import session_of
from sealane.doors.http.connection import ABORT
from sealane.doors.http.event_stream import EventResponse, EventStream
from sealane.doors.http.starts import start_of
from sealane.errors import Unavailable
from sealane.node.following.position import Position
from sealane.node.gate import Gate

routes = APIRouter(prefix="/topics/{topic}/events", tags=["messages"])


@routes.get(
    "",
    status_code=200,
    summary="Follow a topic",
    response_class=EventResponse,
    responses=describing.answers(200, also=(429,)),
)
async def follow(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    start: Annotated[str, Query()] = "latest",
    filter: Annotated[str | None, Query()] = None,
    last_event_id: Annotated[str | None, Header()] = None,
) -> Response:
    """Every message from `start` on, and every one that comes, as `text/event-stream`. Nothing is leased, and no
    subscription is needed: the id of an event is the position behind it, and `Last-Event-ID` goes on from there.
    """
    session = await session_of(request)
    begin = Position.read(last_event_id) if last_event_id else start_of(start)
    draining: asyncio.Future[None] = request.app.state.draining
    if draining.done():
        raise Unavailable("the node is about to stop; ask another one, or this one later")
    name = f"{domain}/{topic}"
    stream = EventStream(name, await session.follow(name, begin, filter), draining, getattr(request.state, ABORT))
    gate: Gate = request.app.state.gate
    try:
        entrance = gate.entrances.came(session.principal, session.origin.address, stream.shown_out)
    except BaseException:
        stream.close()
        raise

    def ended() -> None:
        stream.close()
        gate.entrances.left(entrance)

    return EventResponse(stream, ended)
