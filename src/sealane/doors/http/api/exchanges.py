"""Exchanges, which lead messages to topics by their routing key."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from sealane.doors.http.api import describing, shapes
from sealane.doors.http.api.answers import answer
from sealane.doors.http.authenticating import session_of
from sealane.errors import ExchangeNotFound
from sealane.message import check_name, split_topic
from sealane.node.session import Session
from sealane.routing.exchanges import Exchange

routes = APIRouter(prefix="/exchanges", tags=["exchanges"])


@routes.get("", summary="The exchanges of a domain", responses=describing.answers(200, shapes.Exchanges))
async def list_exchanges(request: Request, domain: shapes.ListedDomain) -> Response:
    session = await session_of(request)
    check_name("domain", domain, session.limits, system=True)
    found = await session.exchanges()
    named = {split_topic(name): exchange for name, exchange in found.items()}
    return answer(
        {"exchanges": [_exchange_json(bare, each) for (of, bare), each in sorted(named.items()) if of == domain]}
    )


@routes.put(
    "/{exchange}",
    summary="Make an exchange",
    responses=describing.answers(200, shapes.ExchangeShape, also=(409,)),
)
async def declare_exchange(
    request: Request,
    domain: shapes.PathName,
    exchange: shapes.PathName,
    settings: shapes.ExchangeSettings | None = None,
) -> Response:
    """Make sure that it exists and is of this kind; 409 if it is of another."""
    session = await session_of(request)
    await session.declare_exchange(f"{domain}/{exchange}", (settings or shapes.ExchangeSettings()).kind)
    return answer(await _found(session, domain, exchange))


@routes.get("/{exchange}", summary="An exchange", responses=describing.answers(200, shapes.ExchangeShape))
async def show_exchange(request: Request, domain: shapes.PathName, exchange: shapes.PathName) -> Response:
    return answer(await _found(await session_of(request), domain, exchange))


@routes.post(
    "/{exchange}/bindings",
    summary="Bind a topic to a routing key",
    responses=describing.answers(200, shapes.ExchangeShape, also=(409,)),
)
async def bind(
    request: Request, domain: shapes.PathName, exchange: shapes.PathName, binding: shapes.BindingShape
) -> Response:
    session = await session_of(request)
    await session.bind(f"{domain}/{exchange}", _full(domain, binding.topic), binding.key)
    return answer(await _found(session, domain, exchange))


@routes.delete(
    "/{exchange}/bindings",
    summary="Take a binding away",
    responses=describing.answers(200, shapes.ExchangeShape),
)
async def unbind(
    request: Request,
    domain: shapes.PathName,
    exchange: shapes.PathName,
    topic: Annotated[shapes.FullName, Query()],
    key: Annotated[str, Query()] = "",
) -> Response:
    session = await session_of(request)
    await session.unbind(f"{domain}/{exchange}", _full(domain, topic), key)
    return answer(await _found(session, domain, exchange))


async def _found(session: Session, domain: shapes.PathName, name: str) -> dict[str, Any]:
    full_name = f"{domain}/{name}"
    found = (await session.exchanges()).get(full_name)
    if found is None:
        raise ExchangeNotFound(full_name)
    return _exchange_json(name, found)


def _full(domain: shapes.PathName, topic: shapes.PathName) -> str:
    return topic if "/" in topic else f"{domain}/{topic}"


def _exchange_json(name: str, exchange: Exchange) -> dict[str, Any]:
    bindings = [{"topic": each.topic, "key": each.pattern} for each in exchange.bindings]
    return {"name": name, "kind": exchange.kind, "bindings": bindings}
