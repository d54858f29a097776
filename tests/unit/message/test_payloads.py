"""Payloads one behind the other: compiled or not, the same to the last bit."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.message.arrays import OFFSET_MAX
from sealane.message.payloads import FEW, between, between_in_python, ends, ends_in_python, together

Payloads = list[bytes] | tuple[bytes, ...]
MEBIBYTE = bytes(1 << 20)


class Way(NamedTuple):
    ends: Callable[[Payloads, int], tuple[bytes, int] | None]
    between: Callable[[bytes, Payloads, int, bytes], bytes]


IN_PYTHON = Way(ends_in_python, between_in_python)
IN_USE = Way(ends, between)


@pytest.fixture(scope="module", params=["in Python", "compiled"])
def way(request: pytest.FixtureRequest, require_service: Callable[[str, bool, str], None]) -> Way:
    if request.param == "in Python":
        return IN_PYTHON
    install = "apt-get install gcc libc6-dev, and `make setup` again"
    require_service("Sealane's compiled part", IN_USE != IN_PYTHON, install)
    return IN_USE


@pytest.mark.parametrize("kind", [list, tuple])
@given(payloads=st.lists(st.binary(max_size=40), max_size=2 * FEW))
def test_ends_are_where_they_are_and_nothing_is_lost_between(
    way: Way, kind: type[list[bytes]] | type[tuple[bytes, ...]], payloads: list[bytes]
) -> None:
    found = way.ends(kind(payloads), 40)
    assert found is not None
    offsets, together = found
    ends = list(accumulate(map(len, payloads), initial=0))
    assert offsets == struct.pack(f"<{len(ends)}i", *ends)
    assert together == ends[-1]
    assert way.between(b"before", kind(payloads), together, b"after") == b"before" + b"".join(payloads) + b"after"


@pytest.mark.parametrize("count", [1, FEW, FEW + 1, 5_000])
def test_a_payload_may_have_so_many_bytes_and_not_one_more(way: Way, count: int) -> None:
    payloads = [*[b"x"] * (count - 1), b"y" * 100]
    assert way.ends(payloads, 100) is not None
    assert way.ends(payloads, 99) is None


@pytest.mark.parametrize(
    "other", ["text", bytearray(b"x"), memoryview(b"x"), None, 7, type("Bytes", (bytes,), {})(b"x")]
)
@pytest.mark.parametrize("count", [1, FEW + 1])
def test_what_is_not_bytes_is_left_to_those_who_can_say_what_is_wrong(way: Way, other: object, count: int) -> None:
    payloads: list[object] = [b"x"] * count
    payloads[-1] = other
    assert way.ends(payloads, 1_000) is None  # type: ignore[arg-type]


@pytest.mark.parametrize("beyond", [0, 1])
def test_all_together_may_be_what_an_offset_reaches(way: Way, beyond: int) -> None:
    whole, rest = divmod(OFFSET_MAX, len(MEBIBYTE))
    payloads = [*[MEBIBYTE] * whole, MEBIBYTE[: rest + beyond]]
    found = way.ends(payloads, len(MEBIBYTE))
    assert found is None if beyond else found is not None and found[1] == OFFSET_MAX


@pytest.mark.parametrize("said", [0, 2, 4, 2**62])
def test_payloads_that_are_not_as_long_as_was_said_are_refused(way: Way, said: int) -> None:
    with pytest.raises((ValueError, MemoryError)):
        way.between(b"", [b"abc"], said, b"")


@pytest.mark.parametrize("payloads", [[], [b"ab", b"", b"c"], (b"abc",), [b"a", bytearray(b"bc")], range(3)])
def test_together_is_asked_of_anything_that_has_payloads(payloads: Sequence[bytes]) -> None:
    if isinstance(payloads, range):
        with pytest.raises(TypeError):
            together(payloads)
    else:
        assert together(payloads) == sum(map(len, payloads))
