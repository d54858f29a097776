"""Columns that are made by hand are those that Arrow makes, and pandas is not needed for any of them."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.message import arrays
from sealane.message.schema import HEADERS_TYPE, TIME_TYPE

texts = st.text(st.characters(codec="utf-8"), max_size=8)
mappings = st.none() | st.dictionaries(texts, texts, max_size=3).map(lambda mapping: list(mapping.items()))


def assert_same(made: pa.Array, by_arrow: pa.Array) -> None:
    made.validate(full=True)
    assert made.type == by_arrow.type
    assert made.null_count == by_arrow.null_count
    assert made.equals(by_arrow)


@given(st.lists(st.none() | st.integers(0, 2**60), max_size=20))
def test_numbers(values: list[int | None]):
    assert_same(arrays.numbers(values, "<i8", TIME_TYPE), pa.array(values, TIME_TYPE))


@given(st.lists(st.none() | st.binary(max_size=9), max_size=20))
def test_bytes(values: list[bytes | None]):
    assert_same(arrays.binaries(values), pa.array(values, pa.binary()))


@given(st.lists(mappings, max_size=20))
def test_headers(values: list[list[tuple[str, str]] | None]):
    assert_same(arrays.headers(values), pa.array(values, HEADERS_TYPE))


def test_more_than_an_offset_reaches_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(arrays, "OFFSET_MAX", 10)
    assert len(arrays.binaries([b"12345", b"67890"])) == 2
    with pytest.raises(OverflowError, match="11 bytes"):
        arrays.binaries([b"12345", b"678901"])


PUBLISHING = """
import asyncio, sys, sealane

async def main():
    async with sealane.embedded() as lane:
        await lane.publish_many("orders", [b"x"] * 1000)
        await lane.publish("orders", b"x", key=b"k", headers={"a": "b"}, priority=7, ttl=60, delay=1)
        await lane.publish("orders", b"x", id="018bcfe5-6800-7000-8000-000000000000")

asyncio.run(main())
print("pandas" in sys.modules)
"""


def test_who_publishes_does_not_wait_for_pandas_to_load():
    pytest.importorskip("pandas")
    done = subprocess.run([sys.executable, "-c", PUBLISHING], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
