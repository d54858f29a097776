"""`POST …/messages`: publishing, to a topic or through an exchange."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer, receipts_answer, receipts_json
from sealane.doors.http.api.bodies import read_batches
from sealane.doors.http.authenticating import session_of
from sealane.errors import InvalidArgument

routes = APIRouter(tags=["messages"])


@routes.post(
    "/topics/{topic}/messages",
    status_code=201,
    summary="Publish messages",
    responses=describing.answers(201, shapes.Receipts, arrow=True, also=(413, 415, 429)),
    openapi_extra=describing.TOPIC_MESSAGES,
)
async def publish(request: Request) -> Response:
    """Answered once every message is durable. A request of one batch (`limits.batch_bytes_max`) is stored whole or not
    at all; what is longer is stored batch by batch, in order.
    """
    # This is the path of every message: FastAPI would take as long to read two names as the node to store it.
    domain, topic = request.path_params["domain"], request.path_params["topic"]
    session = await session_of(request)
    name = f"{domain}/{topic}"
    batches = await read_batches(request, session, name)
    if len(batches) == 1:
        return receipts_answer(request, [await session.publish(name, batches[0])])
    return receipts_answer(request, await asyncio.gather(*(session.publish(name, batch) for batch in batches)))


@routes.post(
    "/exchanges/{exchange}/messages",
    status_code=201,
    summary="Publish messages through an exchange",
    responses=describing.answers(201, shapes.RoutedReceipts, also=(404, 413, 415, 429)),
    openapi_extra=describing.MESSAGES_BODY,
)
async def publish_to_exchange(
    request: Request, domain: shapes.PathName, exchange: shapes.PathName, key: str = ""
) -> Response:
    """To every topic that the routing key leads to, in one commit."""
    session = await session_of(request)
    name = f"{domain}/{exchange}"
    batches = await read_batches(request, session, name)
    if len(batches) != 1:
        raise InvalidArgument("body", f"it makes {len(batches)} batches; an exchange takes one a request")
    stored = await session.publish_to_exchange(name, key, batches[0])
    return answer({"receipts": {topic: receipts_json([receipts]) for topic, receipts in stored.items()}}, 201)
