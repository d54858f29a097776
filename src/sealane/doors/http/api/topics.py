"""Topics: made, looked at, changed and deleted; and their messages as they are stored."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer
from sealane.doors.http.api.browsing import BROWSE_MESSAGES_MAX, browse
from sealane.doors.http.api.subscriptions import subscription_json
from sealane.doors.http.authenticating import session_of
from sealane.errors import Forbidden, TopicNotFound
from sealane.message import check_name, split_topic
from sealane.node.describe import TopicDescription
from sealane.node.session import Session

routes = APIRouter(prefix="/topics", tags=["topics"])


@routes.get("", summary="The topics of a domain", responses=describing.answers(200, shapes.Topics))
async def list_topics(request: Request, domain: shapes.ListedDomain) -> Response:
    """Those that one may do anything to, in order."""
    session = await session_of(request)
    check_name("domain", domain, session.limits, system=True)
    names = [split_topic(name) for name in await session.topics()]
    return answer({"topics": [bare for of, bare in names if of == domain]})


@routes.put(
    "/{topic}",
    summary="Make a topic",
    responses=describing.answers(200, shapes.Topic, also=(409,))
    | {201: {"description": "Made.", "model": shapes.Topic}},
)
async def create_topic(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, settings: shapes.TopicSettings | None = None
) -> Response:
    """Make sure that it exists with these settings; 409 if it exists with others."""
    session = await session_of(request)
    name = f"{domain}/{topic}"
    status = 200
    try:
        await session.describe_topic(name)
    except (Forbidden, TopicNotFound):
        status = 201
    await session.create_topic(name, _given(settings))
    return answer(await _described(session, name), status)


@routes.get("/{topic}", summary="A topic and its subscriptions", responses=describing.answers(200, shapes.Topic))
async def show_topic(request: Request, domain: shapes.PathName, topic: shapes.PathName) -> Response:
    return answer(await _described(await session_of(request), f"{domain}/{topic}"))


@routes.patch("/{topic}", summary="Change a topic", responses=describing.answers(200, shapes.Topic))
async def configure_topic(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, settings: shapes.TopicSettings
) -> Response:
    """What is not given stays as it is. Partitions can be added and never taken away."""
    session = await session_of(request)
    name = f"{domain}/{topic}"
    await session.configure_topic(name, settings.model_dump(exclude_unset=True))
    return answer(await _described(session, name))


@routes.delete("/{topic}", status_code=204, summary="Delete a topic", responses=describing.answers(204))
async def delete_topic(request: Request, domain: shapes.PathName, topic: shapes.PathName) -> Response:
    """With all of its messages and subscriptions; its consumers are told."""
    await (await session_of(request)).delete_topic(f"{domain}/{topic}")
    return Response(status_code=204)


@routes.get(
    "/{topic}/partitions/{partition}/messages",
    summary="Messages as they are stored",
    responses=describing.answers(200, shapes.Browsed),
    tags=["messages"],
)
async def browse_topic(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    partition: int,
    offset: Annotated[int, Query(ge=0, le=shapes.NUMBER_MAX)] = 0,
    max: Annotated[int, Query(ge=1, le=BROWSE_MESSAGES_MAX)] = 100,
) -> Response:
    """Nothing is leased, and nothing is settled by it."""
    session = await session_of(request)
    messages, next_offset = await browse(session, f"{domain}/{topic}", partition, offset, max)
    return answer({"messages": messages, "next_offset": next_offset})


def _given(settings: shapes.TopicSettings | None) -> dict[str, Any]:
    return {} if settings is None else settings.model_dump(exclude_none=True)


async def _described(session: Session, name: str) -> dict[str, Any]:
    return topic_json(await session.describe_topic(name))


def topic_json(described: TopicDescription) -> dict[str, Any]:
    domain, bare = split_topic(described.name)
    return {
        "name": bare,
        "domain": domain,
        "settings": msgspec.to_builtins(described.config),
        "partitions": [
            {"partition": each.partition, "start": each.start, "end": each.end} for each in described.partitions
        ],
        "subscriptions": [subscription_json(each) for each in described.subscriptions],
    }
