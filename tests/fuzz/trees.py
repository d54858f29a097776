"""Ways to spoil values: JSON and MessagePack that stay JSON and MessagePack, and so get past the first decoder."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.fuzz.mutation import mutate
from tests.fuzz.target import Spoil

VALUES: tuple[Any, ...] = (
    *(None, True, 0, 1, -1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 0.0, -1.0, 0.5, 1e300),
    *("", "x", "_system", "a/b", "x" * 300, "\x00", "é", "\u2028", "1", "null", "0" * 40),
    *([], {}, [[]], {"a": {}}, {"": None}, [0, 1], [5, 3], [0, 2**40]),
)
"""What stands where something else should."""
NAMES = ("x", "", "type", "args", "cause", "$ref")
"""Of fields that were not there."""
_DEEP = 40
"""So many lists in each other are a value, now and then; a text of them without end is for plain mutation to make."""


def changed(tree: Any, choose: random.Random, values: Sequence[Any] = VALUES) -> Any:
    """The same value with something else at one place of it."""
    if isinstance(tree, list | tuple) and tree and choose.random() < 0.85:
        return _changed_list(list(tree), choose, values)
    if isinstance(tree, dict) and tree and choose.random() < 0.85:
        return _changed_object(dict(tree), choose, values)
    if isinstance(tree, int) and not isinstance(tree, bool) and choose.random() < 0.5:
        return choose.choice((tree + 1, tree - 1, -tree, tree * 2, tree << 20))
    if isinstance(tree, str) and tree and choose.random() < 0.6:
        # JSON may name half of a surrogate pair, which has no bytes of its own.
        return mutate(tree.encode(errors="surrogatepass"), choose).decode(errors="replace")
    if isinstance(tree, bytes) and tree and choose.random() < 0.6:
        return mutate(tree, choose)
    if choose.random() < 0.02:
        for _ in range(_DEEP):
            tree = [tree]
        return tree
    return choose.choice(values)


def _changed_list(items: list[Any], choose: random.Random, values: Sequence[Any]) -> list[Any]:
    place = choose.randrange(len(items))
    kind = choose.random()
    if kind < 0.1:
        del items[place]
    elif kind < 0.2:
        items.insert(place, choose.choice((items[place], choose.choice(values))))
    else:
        items[place] = changed(items[place], choose, values)
    return items


def _changed_object(fields: dict[Any, Any], choose: random.Random, values: Sequence[Any]) -> dict[Any, Any]:
    name = choose.choice(list(fields))
    kind = choose.random()
    if kind < 0.1:
        del fields[name]
    elif kind < 0.2:
        fields[choose.choice((*fields, *NAMES))] = choose.choice((fields[name], choose.choice(values)))
    else:
        fields[name] = changed(fields[name], choose, values)
    return fields


def spoil_json(values: Sequence[Any] = VALUES) -> Spoil:
    """Mostly another document; sometimes other bytes."""
    return _spoiler(json.loads, _dump_json, values)


def spoil_msgpack(values: Sequence[Any] = (*VALUES, b"", b"\xff", b"x" * 300)) -> Spoil:
    return _spoiler(msgspec.msgpack.decode, msgspec.msgpack.encode, values)


def _spoiler(read: Callable[[bytes], Any], write: Callable[[Any], bytes], values: Sequence[Any]) -> Spoil:
    def spoil(data: bytes, choose: random.Random) -> bytes:
        if choose.random() < 0.3:
            return mutate(data, choose)
        try:
            tree = read(data)
            for _ in range(choose.choice((1, 1, 2, 4))):
                tree = changed(tree, choose, values)
            return write(tree)
        except (ValueError, RecursionError, TypeError, OverflowError):
            return mutate(data, choose)  # It is spoiled already.

    return spoil


def _dump_json(tree: Any) -> bytes:
    return json.dumps(tree, ensure_ascii=False).encode(errors="replace")
