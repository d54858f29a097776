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


def clean_body(payload: bytes, numbers: Numbers, schema: TopicSchema | None, *, is_sealed: bool = False) -> CleanBody:
    """What becomes of a payload; `is_sealed`: end to end, for others than this job.

    JSON, be it by the topic's schema or because it is an object or a list, is written anew: without spaces, of a name
    that is there twice the last. Text and all else stay as they are. The reason says nothing of the payload but where
    in it something is wrong.
    """
    if is_sealed:
        return CleanBody("sealed-end-to-end", payload)
    if schema is not None:
        problem = schema.problem(payload)
        if problem is not None:
            return CleanBody(reason=_without_numbers(problem))
        if schema.format != "json":
            return CleanBody("binary", payload)
    elif not payload.lstrip(b" \t\r\n").startswith((b"{", b"[")):
        return _text_or_binary(payload, numbers)
    if len(payload) > JSON_DEPTH_MAX and depth(payload) > JSON_DEPTH_MAX:
        return CleanBody(reason=f"its lists and objects are nested more than {JSON_DEPTH_MAX} deep")
    try:
        document = _decode(payload)
    except _UNREADABLE:
        # A schema has read it, so it is a number that is beyond all bounds.
        return _text_or_binary(payload, numbers) if schema is None else CleanBody(reason="it has a number without end")
    return CleanBody("json", _encode(numbers.in_document(document)))


def document_of(body: bytes) -> Any:
    """A body of the format `json`, read; what is no whole number is a `Decimal`."""
    return _decode(body)


def _text_or_binary(payload: bytes, numbers: Numbers) -> CleanBody:
    try:
        payload.decode()
    except UnicodeDecodeError:
        return CleanBody("binary", payload)
    return CleanBody("text", numbers.in_bytes(payload))


def _without_numbers(problem: str) -> str:
    """A path has names of fields, which the payload may have chosen."""
    return _DIGITS_IN_TEXT.sub("…", problem)
