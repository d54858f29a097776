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
from sealane.message.payloads import FEW, ends, ends_in_python, lay_out, lay_out_in_python, together

Payloads = list[bytes] | tuple[bytes, ...]
MEBIBYTE = bytes(1 << 20)


class Way(NamedTuple):
    ends: Callable[[Payloads, int], tuple[bytes, int] | None]
    lay_out: Callable[[memoryview, int, int, bytes, Payloads, int, int], None]


IN_PYTHON = Way(ends_in_python, lay_out_in_python)
IN_USE = Way(ends, lay_out)
ID = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
TIME_US = 0x0011223344556677


def padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 8)


@pytest.fixture(scope="module", params=["in Python", "compiled"])
def way(request: pytest.FixtureRequest, require_service: Callable[[str, bool, str], None]) -> Way:
    if request.param == "in Python":
        return IN_PYTHON
    install = "apt-get install gcc libc6-dev, and `make setup` again"
    require_service("Sealane's compiled part", IN_USE != IN_PYTHON, install)
    return IN_USE


@pytest.mark.parametrize("kind", [list, tuple])
@given(payloads=st.lists(st.binary(max_size=40), max_size=2 * FEW))
def test_columns_are_laid_out_one_behind_the_other(
    way: Way, kind: type[list[bytes]] | type[tuple[bytes, ...]], payloads: list[bytes]
) -> None:
    found = way.ends(kind(payloads), 40)
    assert found is not None
    offsets, together = found
    ends = list(accumulate(map(len, payloads), initial=0))
    assert offsets == struct.pack(f"<{len(ends)}i", *ends)
    assert together == ends[-1]
    ids = b"".join(struct.pack(">QQ", ID[0], ID[1] + row) for row in range(len(payloads)))
    times = struct.pack("<Q", TIME_US) * len(payloads)
    expected = ids + padded(offsets) + padded(b"".join(payloads)) + times
    columns = memoryview(bytearray(b"?" * len(expected)))
    way.lay_out(columns, *ID, offsets, kind(payloads), together, TIME_US)
    assert bytes(columns) == expected


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


def room(count: int, payload_bytes: int) -> memoryview:
    return memoryview(bytearray(24 * count + len(padded(bytes(4 * (count + 1)))) + len(padded(bytes(payload_bytes)))))


@pytest.mark.parametrize("said", [0, 2, 4, 9, 2**62, -1])
def test_payloads_that_are_not_as_long_as_was_said_are_refused(way: Way, said: int) -> None:
    for columns in (room(1, 3), room(1, max(0, said) % 100)):
        with pytest.raises((ValueError, MemoryError)):
            way.lay_out(columns, *ID, struct.pack("<ii", 0, 3), [b"abc"], said, TIME_US)


@pytest.mark.parametrize("more_bytes", [-40, -8, -1, 1, 8])
def test_columns_that_do_not_fill_their_room_are_refused(way: Way, more_bytes: int) -> None:
    whole = memoryview(bytearray(len(room(1, 3)) + 8))
    with pytest.raises(ValueError, match="not as many bytes"):
        way.lay_out(whole[: len(whole) - 8 + more_bytes], *ID, struct.pack("<ii", 0, 3), [b"abc"], 3, TIME_US)


@pytest.mark.parametrize("ends", [b"", bytes(4), bytes(12)])
def test_as_many_ends_as_payloads_are_needed(way: Way, ends: bytes) -> None:
    columns = memoryview(bytearray(24 + len(padded(ends)) + 8))
    with pytest.raises(ValueError, match="not as many bytes"):
        way.lay_out(columns, *ID, ends, [b"abc"], 3, TIME_US)


@pytest.mark.parametrize("payloads", [[], [b"ab", b"", b"c"], (b"abc",), [b"a", bytearray(b"bc")], range(3)])
def test_together_is_asked_of_anything_that_has_payloads(payloads: Sequence[bytes]) -> None:
    if isinstance(payloads, range):
        with pytest.raises(TypeError):
            together(payloads)
    else:
        assert together(payloads) == sum(map(len, payloads))
