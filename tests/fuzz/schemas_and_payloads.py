"""Schemas with payloads, as one input (MessagePack): a definition, another one, and payloads of the first."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence

import msgspec

from sealane.errors import InvalidSchema
from sealane.schemas import Definition, Misfit, Schema, incompatibilities, open_schema
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Check, Spoil

PAYLOADS_MAX = 1_000


class Given(msgspec.Struct, array_like=True):
    definition: bytes
    other: bytes
    payloads: list[bytes]


def given(definition: bytes, other: bytes, payloads: Sequence[bytes]) -> bytes:
    return msgspec.msgpack.encode(Given(definition, other, list(payloads)))


def checked(define: Callable[[bytes], Definition], *, describes_itself: bool = True) -> Check:
    """Whether the first is a schema, and all payloads fit. `describes_itself`: a payload of the format can be read by a
    schema that it was not written by.
    """

    def check(data: bytes) -> bool:
        try:
            found = msgspec.msgpack.decode(data, type=Given)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return False
        schema = _opened(define, found.definition)
        if schema is None:
            return False
        assert schema.cannot_read(schema, checks=True) == [], "a schema reads what it allows"
        misfit = schema.check(found.payloads)
        assert misfit is None or _is_told(misfit, found)
        other = _opened(define, found.other)
        if other is not None:
            problems = incompatibilities("full", schema, other)
            assert all(len(problem) < 10_000 for problem in problems)
            if describes_itself and not problems and misfit is None:
                assert other.check(found.payloads) is None, "it may follow, and refuses what was taken"
        return misfit is None

    return check


def _opened(define: Callable[[bytes], Definition], data: bytes) -> Schema | None:
    try:
        return open_schema(define(data))
    except InvalidSchema as error:
        str(error).encode()
        return None


def _is_told(misfit: Misfit, found: Given) -> bool:
    misfit.problem.encode()
    misfit.path.encode()
    return 0 <= misfit.index < len(found.payloads)


def spoiled(spoil_definition: Spoil, spoil_payload: Spoil = mutate) -> Spoil:
    """One of the parts, in the way of its format."""

    def spoil(data: bytes, choose: random.Random) -> bytes:
        try:
            found = msgspec.msgpack.decode(data, type=Given)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            return mutate(data, choose)
        kind = choose.random()
        if kind < 0.3:
            found.definition = spoil_definition(found.definition, choose)
        elif kind < 0.5:
            found.other = spoil_definition(choose.choice((found.other, found.definition)), choose)
        elif kind < 0.6:
            # Many at a time are checked in another way than few.
            found.payloads = (found.payloads * 300)[:PAYLOADS_MAX]
        elif found.payloads:
            place = choose.randrange(len(found.payloads))
            found.payloads[place] = spoil_payload(found.payloads[place], choose)
        else:
            found.payloads.append(b"x")
        return msgspec.msgpack.encode(found)

    return spoil
