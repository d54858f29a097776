"""Webhooks: subscriptions whose messages are pushed to a URL."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel, ConfigDict, Field

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer
from sealane.doors.http.authenticating import session_of
from sealane.message import check_name

routes = APIRouter(tags=["webhooks"])

ONE = "/topics/{topic}/subscriptions/{subscription}/webhook"


class GivenWebhook(shapes.Shape):
    """Where messages go. `start` is of the subscription, if it is new; `retry` is of it too, from now on."""

    model_config = shapes.example(url="https://hooks.example.com/orders", messages_max=10)

    url: str
    messages_max: Annotated[int, Field(ge=1, description="Messages of one request.")] = 1
    timeout_seconds: Annotated[float, Field(gt=0)] = 15.0
    start: Literal["earliest", "latest"] = "earliest"
    retry: shapes.RetrySettings | None = None


class RotateOrder(shapes.Shape):
    model_config = shapes.example(keep_seconds=3600)

    keep_seconds: Annotated[float, Field(ge=0, description="How long the secret before signs too.")] = 24 * 3600.0


class WebhookShape(BaseModel):
    """`secret` is in the answer to who makes or rotates it, and nowhere else."""

    model_config = ConfigDict(extra="allow")

    topic: str
    subscription: str
    url: str
    state: str
    secret: str | None = None


class Webhooks(shapes.Shape):
    webhooks: list[WebhookShape]


class RemovedWebhook(shapes.Shape):
    topic: str
    subscription: str
    removed: bool


@routes.get("/webhooks", summary="The webhooks of a domain", responses=describing.answers(200, Webhooks))
async def list_webhooks(request: Request, domain: shapes.PathName) -> Response:
    session = await session_of(request)
    check_name("domain", domain, session.limits, system=True)
    found = await session.administer("webhook.list", {})
    return answer({"webhooks": [each for each in found if each["topic"].startswith(f"{domain}/")]})


@routes.post(
    ONE, status_code=201, summary="Make a webhook", responses=describing.answers(201, WebhookShape, also=(409,))
)
async def create(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    given: GivenWebhook,
) -> Response:
    """Keep the `secret` of the answer: it is told once, and every request to the URL is signed by it."""
    arguments = given.model_dump(exclude_none=True)
    return answer(await _administer(request, "create", domain, topic, subscription, **arguments), 201)


@routes.get(ONE, summary="A webhook", responses=describing.answers(200, WebhookShape))
async def show(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    return answer(await _administer(request, "show", domain, topic, subscription))


@routes.delete(ONE, summary="Remove a webhook", responses=describing.answers(200, RemovedWebhook))
async def remove(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    """The subscription stays, and its messages wait."""
    return answer(await _administer(request, "remove", domain, topic, subscription))


@routes.post(f"{ONE}/pause", summary="Send nothing for now", responses=describing.answers(200, WebhookShape))
async def pause(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    return answer(await _administer(request, "pause", domain, topic, subscription))


@routes.post(f"{ONE}/resume", summary="Send again", responses=describing.answers(200, WebhookShape))
async def resume(
    request: Request, domain: shapes.PathName, topic: shapes.PathName, subscription: shapes.PathName
) -> Response:
    """Whoever resumes it takes it over."""
    return answer(await _administer(request, "resume", domain, topic, subscription))


@routes.post(f"{ONE}/rotate", summary="Exchange the secret", responses=describing.answers(200, WebhookShape))
async def rotate(
    request: Request,
    domain: shapes.PathName,
    topic: shapes.PathName,
    subscription: shapes.PathName,
    order: RotateOrder | None = None,
) -> Response:
    arguments = (order or RotateOrder()).model_dump()
    return answer(await _administer(request, "rotate", domain, topic, subscription, **arguments))


async def _administer(
    request: Request, what: str, domain: str, topic: str, subscription: str, **arguments: Any
) -> dict[str, Any]:
    named = {"topic": f"{domain}/{topic}", "subscription": subscription, **arguments}
    answered: dict[str, Any] = await (await session_of(request)).administer(f"webhook.{what}", named)
    return answered
