from __future__ import annotations

import json
import sys

import pytest

from sealane.schemas.json.depth import JSON_DEPTH_MAX, depth
from sealane.spark.values import values_of
from tests.unit.spark.values.reading import read

VALUES = values_of("json", "a INT")


def nested(levels: int) -> bytes:
    """An object with so many levels, itself included."""
    return b'{"z":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def test_a_payload_at_the_limit_is_read_and_one_beyond_is_corrupt() -> None:
    deepest, deeper = nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX + 1)

    assert read(VALUES, [deepest, deeper, deepest]) == [{"a": None}, None, {"a": None}]


def test_many_brackets_that_are_not_within_each_other_are_no_depth() -> None:
    wide = {"a": 1, "z": [[], {}] * 1000, "text": "[{" * 1000 + '"\\' + "[" * 1000}

    assert read(VALUES, [json.dumps(wide).encode()]) == [{"a": 1}]


@pytest.mark.parametrize(
    ("payload", "levels"),
    [(b"", 0), (b"{}", 1), (b'{"a":[{}]}', 3), (b'"[[[[" [', 1), (b'"\\"[[[[" [[', 2), (b'[ "[[[', 1), (b"]]][[", 0)],
)
def test_depth_counts_what_is_open_at_once(payload: bytes, levels: int) -> None:
    assert depth(payload) == levels


def test_how_deep_is_too_deep_does_not_depend_on_the_stack() -> None:
    def below(frames: int) -> object:
        return below(frames - 1) if frames else read(VALUES, [nested(JSON_DEPTH_MAX), nested(JSON_DEPTH_MAX + 1)])

    assert below(0) == below((sys.getrecursionlimit() - JSON_DEPTH_MAX) // 3) == [{"a": None}, None]
