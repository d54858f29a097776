"""What a request to publish has in its body: JSON, one raw payload, or an Arrow stream; all of them become batches."""

from __future__ import annotations

from collections.abc import Mapping
from uuid import UUID

from starlette.exceptions import HTTPException
from starlette.requests import Request

from sealane.doors.http.api.idempotency import IdempotencyKeys, ids_of
from sealane.doors.http.message_shape import batch_of, read_messages
from sealane.errors import InvalidArgument, InvalidMessage
from sealane.message import Batch, from_arrow
from sealane.message.ipc_stream import read_stream
from sealane.node.outgoing import Outgoing
from sealane.node.session import Session

JSON = "application/json"
ARROW = "application/vnd.apache.arrow.stream"
RAW = "application/octet-stream"

HEADER_PREFIX = "sealane-header-"
"""A header of the request that starts so is a header of the message."""


async def read_batches(request: Request, session: Session, topic: str) -> list[Batch]:
    """The batches that the body holds. Raises what is wrong with it; 415 for a kind of body that is not known."""
    body = await request.body()
    outgoing = Outgoing(session.limits, session.surroundings)
    seed = _seed(request, session, topic, body)
    kind = request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if kind == JSON:
        messages = read_messages(body)
        if seed is not None:
            for message, identity in zip(messages, _ids(seed, len(messages)), strict=True):
                if message.id is not None:
                    raise _given_twice()
                message.id = identity
        return [batch_of(messages, outgoing)]
    if kind == RAW:
        return [_raw(body, request.headers, outgoing, seed)]
    if kind == ARROW:
        table = read_stream(body)
        if seed is not None:
            if "id" in table.schema.names:
                raise _given_twice()
            table = table.append_column("id", ids_of(seed, table.num_rows))
        return from_arrow(table, session.surroundings.stamp(), limits=session.limits)
    raise HTTPException(415, f"a body of type {kind[:128]!r} is not known; send {JSON}, {RAW} or {ARROW}")


def _seed(request: Request, session: Session, topic: str, body: bytes) -> bytes | None:
    key = request.headers.get("idempotency-key")
    if key is None:
        return None
    keys: IdempotencyKeys = request.app.state.idempotency_keys
    return keys.seed(key, f"{session.principal.domain}/{session.principal.name}", topic, body)


def _ids(seed: bytes, count: int) -> list[UUID]:
    return [UUID(bytes=identity) for identity in ids_of(seed, count).to_pylist()]


def _given_twice() -> InvalidArgument:
    return InvalidArgument("Idempotency-Key", "the messages have ids, which do the same; give one or the other")


def _raw(body: bytes, given: Mapping[str, str], outgoing: Outgoing, seed: bytes | None) -> Batch:
    """One message, whose payload is the body; the rest of it is in headers of the request."""
    identity = given.get("sealane-id")
    if seed is not None:
        if identity is not None:
            raise _given_twice()
        identity = str(_ids(seed, 1)[0])
    key = given.get("sealane-key")
    headers = {
        name.removeprefix(HEADER_PREFIX): value for name, value in given.items() if name.startswith(HEADER_PREFIX)
    }
    row = outgoing.row(
        body,
        key=None if key is None else key.encode("latin-1"),
        headers=headers or None,
        priority=_whole("sealane-priority", given.get("sealane-priority", "5")),
        ttl=_seconds("sealane-ttl", given["sealane-ttl"]) if "sealane-ttl" in given else None,
        delay=_seconds("sealane-delay", given.get("sealane-delay", "0")),
        id=identity,
    )
    return outgoing.build([row])


def _whole(name: str, text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidMessage(name, f"{text[:32]!r} is not a whole number") from None


def _seconds(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InvalidMessage(name, f"{text[:32]!r} is not a number of seconds") from None
