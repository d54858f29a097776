"""A body that may be kept: checked, without phone numbers, and sealed if it is not to be read by everybody."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any, Literal, NamedTuple

import msgspec

from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.schemas.json.depth import JSON_DEPTH_MAX, depth

BodyFormat = Literal["json", "text", "binary", "sealed-end-to-end"]

# Numbers keep all of their digits: a float would lose some of a price.
_decode = msgspec.json.Decoder(float_hook=Decimal).decode
_encode = msgspec.json.Encoder(decimal_format="number").encode
_UNREADABLE = (msgspec.MsgspecError, UnicodeDecodeError, ArithmeticError, ValueError)
_DIGITS_IN_TEXT = re.compile(r"\+?[0-9][0-9 ()./-]{5,}[0-9]")


class CleanBody(NamedTuple):
    format: BodyFormat | None = None
    body: bytes | None = None
    reason: str | None = None
    """Why it cannot be cleaned: then there is nothing else."""


class Told(NamedTuple):
    """What can be said of a payload before anything in it is changed."""

    format: BodyFormat | None = None
    reason: str | None = None
    document: Any = None
    """Of JSON, what was read."""


def clean_body(payload: bytes, numbers: Numbers, schema: TopicSchema | None, *, is_sealed: bool = False) -> CleanBody:
    """What becomes of a payload; `is_sealed`: end to end, for others than this job.

    JSON, be it by the topic's schema or because it is an object or a list, is written anew: without spaces, of a name
    that is there twice the last. Text and all else stay as they are. The reason says nothing of the payload but where
    in it something is wrong.
    """
    told = tell(payload, schema, is_sealed=is_sealed)
    match told.format:
        case None:
            return CleanBody(reason=told.reason)
        case "json":
            return CleanBody("json", _encode(numbers.in_document(told.document)))
        case "text":
            return CleanBody("text", numbers.in_bytes(payload))
        case _:
            return CleanBody(told.format, payload)


def tell(payload: bytes, schema: TopicSchema | None, *, is_sealed: bool = False) -> Told:
    """What a payload is, or why it cannot be cleaned: all there is to know where its body is left out."""
    if is_sealed:
        return Told("sealed-end-to-end")
    if schema is not None:
        problem = schema.problem(payload)
        if problem is not None:
            return Told(reason=_without_numbers(problem))
        if schema.format != "json":
            return Told("binary")
    elif not payload.lstrip(b" \t\r\n").startswith((b"{", b"[")):
        return Told(_text_or_binary(payload))
    if len(payload) > JSON_DEPTH_MAX and depth(payload) > JSON_DEPTH_MAX:
        return Told(reason=f"its lists and objects are nested more than {JSON_DEPTH_MAX} deep")
    try:
        document = _decode(payload)
    except _UNREADABLE:
        # A schema has read it, so it is a number that is beyond all bounds.
        return Told(_text_or_binary(payload)) if schema is None else Told(reason="it has a number without end")
    return Told("json", None, document)


def written(document: Any) -> bytes:
    """A document as a body of the format `json`."""
    return _encode(document)


def document_of(body: bytes) -> Any:
    """A body of the format `json`, read; what is no whole number is a `Decimal`."""
    return _decode(body)


def _text_or_binary(payload: bytes) -> BodyFormat:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return "binary"
    return "text"


def _without_numbers(problem: str) -> str:
    """A path has names of fields, which the payload may have chosen."""
    return _DIGITS_IN_TEXT.sub("…", problem)
