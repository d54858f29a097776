"""Bytes become lines, however they are cut."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from sealane.wire.cipher.lines import Line, LineReader, Skipped

LIMIT = 10


def received(reader: LineReader, pieces: list[bytes]) -> list[Line]:
    return [line for piece in pieces for line in reader.receive(piece)]


@st.composite
def cut_texts(draw: st.DrawFn) -> tuple[bytes, list[bytes]]:
    """A text of lines, and the same in pieces."""
    text = draw(st.binary(max_size=60).map(lambda raw: raw.replace(b"\x01", b"\n").replace(b"\x02", b"\n")))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=12)))
    edges = [0, *cuts, len(text)]
    return text, [text[start:stop] for start, stop in pairwise(edges)]


@given(cut_texts())
def test_the_lines_are_the_same_wherever_the_text_is_cut(cut: tuple[bytes, list[bytes]]) -> None:
    text, pieces = cut
    reader = LineReader(LIMIT)

    *ended, begun = text.split(b"\n")
    expected = [line if len(line) <= LIMIT else Skipped.TOO_LONG for line in ended]
    assert received(reader, pieces) == expected
    assert reader.is_amid_line == bool(begun)
    assert reader.kept_bytes == (len(begun) if len(begun) <= LIMIT else 0)


def test_a_line_may_be_as_long_as_the_limit_and_no_longer() -> None:
    reader = LineReader(LIMIT)

    assert reader.receive(b"x" * LIMIT + b"\n" + b"x" * (LIMIT + 1) + b"\n") == [b"x" * LIMIT, Skipped.TOO_LONG]


def test_nothing_is_kept_of_a_line_that_is_too_long_and_the_next_one_is_read() -> None:
    reader = LineReader(LIMIT)

    assert received(reader, [b"x" * 8, b"x" * 8, b"x" * 1_000]) == []
    assert (reader.kept_bytes, reader.is_amid_line) == (0, True)
    assert received(reader, [b"xx\ngo", b"od\n"]) == [Skipped.TOO_LONG, b"good"]
    assert not reader.is_amid_line


def test_a_line_that_is_given_up_is_skipped_to_its_end() -> None:
    reader = LineReader(LIMIT)

    reader.receive(b"abc")
    reader.give_up()
    assert reader.kept_bytes == 0
    assert received(reader, [b"def", b"ghi\njkl\n"]) == [Skipped.NO_ROOM, b"jkl"]


def test_giving_up_between_two_lines_skips_nothing() -> None:
    reader = LineReader(LIMIT)

    reader.give_up()
    assert reader.receive(b"abc\n") == [b"abc"]
