"""How operations are described in the OpenAPI document, where FastAPI cannot read it off their code."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic import BaseModel

from sealane.doors.http.api import shapes
from sealane.doors.http.api.bodies import ARROW, JSON, RAW

_BYTES = {"type": "string", "format": "binary"}
_PROBLEMS = {
    400: "The request cannot be read.",
    401: "The credential is missing, wrong or over.",
    403: "The principal may not do this.",
    404: "It does not exist.",
    409: "It does not fit the state of things; nothing was done.",
    413: "It is larger than a limit allows; nothing was done.",
    415: "The body is of a kind that is not known.",
    422: "What was sent breaks a rule; nothing was done.",
    429: "A quota or a queue is full; come back after `Retry-After` seconds.",
    501: "The node is without a library that this needs.",
    503: "The node does not serve at the moment.",
    507: "The disk is full.",
}
_ALWAYS = (400, 401, 403, 404, 422, 503)

Responses = dict[int | str, dict[str, Any]]


def answers(
    status: int, shape: type[BaseModel] | None = None, *, arrow: bool = False, also: Sequence[int] = ()
) -> Responses:
    """What an operation answers with when all is well, and the problems that it may answer with."""
    well: dict[str, Any] = {"description": "Done."}
    if shape is not None:
        well["model"] = shape
    if arrow:
        well["content"] = {ARROW: {"schema": _BYTES}}
    found: Responses = {status: well}
    for problem in sorted({*_ALWAYS, *also, *((507,) if status == 201 else ())}):
        reference = {"$ref": f"#/components/schemas/{shapes.ProblemDocument.__name__}"}
        content = {"application/problem+json": {"schema": reference}}
        found[problem] = {"description": _PROBLEMS[problem], "content": content}
    return found


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "header", "description": description, "schema": {"type": "string", **schema}}


def _in_path(name: str) -> dict[str, Any]:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "pattern": shapes.NAME_PATTERN}}


MESSAGES_BODY: dict[str, Any] = {
    "parameters": [
        _header("Idempotency-Key", "A request that is sent again under the same key is stored once.", maxLength=256),
        _header("Sealane-Key", f"The message's key, where the body is `{RAW}`."),
        _header("Sealane-Priority", f"1 to 10, where the body is `{RAW}`.", pattern="^([1-9]|10)$"),
        _header("Sealane-TTL", f"Seconds, where the body is `{RAW}`.", pattern="^[1-9][0-9]{0,6}$"),
        _header("Sealane-Delay", f"Seconds, where the body is `{RAW}`.", pattern="^[0-9]{1,7}$"),
        _header("Sealane-Id", f"A UUID, where the body is `{RAW}`.", format="uuid"),
    ],
    "requestBody": {
        "required": True,
        "content": {
            JSON: {
                "schema": {
                    "anyOf": [
                        {"$ref": "#/components/schemas/GivenMessage"},
                        {"$ref": "#/components/schemas/GivenMessages"},
                    ]
                },
                "examples": {
                    "one": {"summary": "One message", "value": {"payload": "hello", "key": "42", "priority": 7}},
                    "several": {"summary": "Several", "value": {"messages": [{"payload": "a"}, {"payload": "b"}]}},
                    "bytes": {"summary": "Any bytes", "value": {"payload_base64": "AAEC/w=="}},
                },
            },
            RAW: {"schema": _BYTES},
            ARROW: {"schema": _BYTES},
        },
    },
}
"""Of what publishes."""
TOPIC_MESSAGES: dict[str, Any] = {
    **MESSAGES_BODY,
    "parameters": [_in_path("domain"), _in_path("topic"), *MESSAGES_BODY["parameters"]],
}
"""The same for the one whose path FastAPI is not asked to read."""

NAMED_SHAPES: tuple[type[BaseModel], ...] = (shapes.GivenMessage, shapes.GivenMessages, shapes.ProblemDocument)
"""Shapes that are only referred to by name, and so are added to the document by hand."""
