"""Subscriptions: made, looked at, moved and deleted; and the dead letters that they have given up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from fastapi import APIRouter, Query, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer
from sealane.doors.http.api.browsing import BROWSE_MESSAGES_MAX, browse
from sealane.doors.http.authenticating import session_of
from sealane.errors import InvalidArgument, SubscriptionNotFound, TopicNotFound
from sealane.node.dead_letters import dead_topic_name
from sealane.node.describe import SubscriptionDescription
from sealane.node.redrive import RedriveWish
from sealane.node.starts import Start

routes = APIRouter(prefix="/topics/{topic}/subscriptions", tags=["subscriptions"])


@routes.get("", summary="The subscriptions of a topic", responses=describing.answers(200, shapes.Subscriptions))
async def list_subscriptions(request: Request, domain: shapes.PathName, topic: shapes.PathName) -> Response:
    described = await (await session_of(request)).describe_topic(f"{domain}/{topic}")
    return answer({"subscriptions": [subscription_json(each) for each in described.subscriptions]})


@routes.put(
    "/{subscription}",
    summary="Make a subscription",
    responses=describing.answers(200, shapes.Subscription, also=(409,)),
)
async def subscribe(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    settings: shapes.SubscriptionSettings | None = None,
) -> Response:
    """Make sure that it exists so, before anyone consumes: messages from `start` on wait for it."""
    settings = settings or shapes.SubscriptionSettings()
    session = await session_of(request)
    name = f"{domain}/{topic}"
    await session.subscribe(name, subscription, settings.config(), start_of(settings.start))
    return answer(subscription_json(await _found(request, name, subscription)))


@routes.get("/{subscription}", summary="A subscription", responses=describing.answers(200, shapes.Subscription))
async def show_subscription(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    return answer(subscription_json(await _found(request, f"{domain}/{topic}", subscription)))


@routes.delete("/{subscription}", status_code=204, summary="Delete a subscription", responses=describing.answers(204))
async def unsubscribe(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    """With its position; its consumers are told."""
    await (await session_of(request)).unsubscribe(f"{domain}/{topic}", subscription)
    return Response(status_code=204)


@routes.post(
    "/{subscription}/seek", summary="Begin again from somewhere else", responses=describing.answers(200, shapes.Offsets)
)
async def seek(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName, to: shapes.Start
) -> Response:
    """Messages before are settled, messages from there on come again. Leases are over."""
    offsets = await (await session_of(request)).seek(f"{domain}/{topic}", subscription, start_of(to))
    return answer({"offsets": {str(partition): offset for partition, offset in offsets.items()}})


# --- dead letters ---------------------------------------------------------------------------------------------------


@routes.get(
    "/{subscription}/dead-letters",
    summary="Dead letters",
    responses=describing.answers(200, shapes.DeadLetters),
    tags=["dead letters"],
)
async def dead_letters(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    max: Annotated[int, Query(ge=1, le=BROWSE_MESSAGES_MAX)] = 100,
) -> Response:
    """The first of those that were not driven back. Their headers say why they died."""
    session = await session_of(request)
    await _found(request, f"{domain}/{topic}", subscription)
    name = f"{domain}/{dead_topic_name(topic, subscription)}"
    try:
        described = await session.describe_topic(name)
    except TopicNotFound:
        return answer({"topic": name, "depth": 0, "messages": []})
    positions = described.redrive.positions if described.redrive is not None else {}
    messages: list[dict[str, Any]] = []
    for place in described.partitions:
        if len(messages) < max:
            first = positions.get(place.partition, place.start)
            messages += (await browse(session, name, place.partition, first, max - len(messages)))[0]
    depth = described.redrive.depth if described.redrive is not None else 0
    return answer({"topic": name, "depth": depth, "messages": messages})


@routes.post(
    "/{subscription}/dead-letters/redrive",
    summary="Drive dead letters back",
    responses=describing.answers(200, shapes.Redriven),
    tags=["dead letters"],
)
async def redrive(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    order: shapes.RedriveOrder | None = None,
) -> Response:
    """To the subscription that had given them up, and to no other. `dry_run` only says how many there are."""
    order = order or shapes.RedriveOrder()
    wish = RedriveWish(order.filter, order.dry_run, order.rate, order.messages_max)
    report = await (await session_of(request)).redrive(f"{domain}/{topic}", subscription, wish)
    return answer({"dry_run": report.dry_run, "messages": report.messages, "reasons": dict(report.reasons)})


async def _found(request: Request, topic: shapes.PathName, subscription: shapes.PathName) -> SubscriptionDescription:
    described = await (await session_of(request)).describe_topic(topic)
    return _named(described.subscriptions, topic, subscription)


def _named(found: Sequence[SubscriptionDescription], topic: shapes.PathName, name: str) -> SubscriptionDescription:
    for each in found:
        if each.name == name:
            return each
    raise SubscriptionNotFound(f"{topic}:{name}")


def start_of(given: shapes.Start) -> Start:
    chosen: list[Start] = [each for each in (given.at, given.time, _by_partition(given)) if each is not None]
    if len(chosen) != 1:
        raise InvalidArgument("start", "has one of at, time and offsets")
    return chosen[0]


def _by_partition(given: shapes.Start) -> dict[int, int] | None:
    return None if given.offsets is None else {int(partition): at for partition, at in given.offsets.items()}


def subscription_json(each: SubscriptionDescription) -> dict[str, Any]:
    config = each.config
    return {
        "name": each.name,
        "mode": config.mode,
        "lease_seconds": config.lease_seconds,
        "filter": config.filter,
        "retry": msgspec.structs.asdict(config.retry),
        "depth": each.depth,
        "leased": each.leased,
        "waiting": each.waiting,
        "dying": each.dying,
        "consumers": each.consumers,
        "positions": {str(partition): floor for partition, floor in each.positions.items()},
    }
