"""Offsets as runs, and errors as faults: there and back again."""

from __future__ import annotations

import inspect
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyroaring import BitMap64

from sealane import errors
from sealane.errors import InvalidName, LimitExceeded, SealaneError, TopicNotFound
from sealane.wire.errors import ProtocolError
from sealane.wire.faults import CODES, INTERNAL, error_of, fault_of
from sealane.wire.runs import RUN_OFFSETS_MAX, from_runs, to_runs


@given(st.sets(st.integers(0, 300) | st.integers(2**40, 2**40 + 50)))
def test_any_offsets_come_back_from_their_runs(offsets: set[int]) -> None:
    runs = to_runs(BitMap64(offsets))
    assert from_runs(runs) == BitMap64(offsets)
    assert runs == sorted(set(runs)), "ascending, and no two runs touch"


@given(st.lists(st.integers(-5, 40) | st.integers(2**62, 2**65), max_size=8))
def test_any_numbers_are_runs_or_refused(numbers: list[int]) -> None:
    try:
        offsets = from_runs(numbers)
    except ProtocolError:
        return
    assert to_runs(offsets) == numbers


def test_one_answer_is_about_so_many_messages_and_no_more() -> None:
    assert len(from_runs([5, 5 + RUN_OFFSETS_MAX])) == RUN_OFFSETS_MAX
    assert len(from_runs([0, 1, 5, 4 + RUN_OFFSETS_MAX])) == RUN_OFFSETS_MAX
    for runs in ([5, 6 + RUN_OFFSETS_MAX], [0, 1, 5, 5 + RUN_OFFSETS_MAX]):
        with pytest.raises(ProtocolError):
            from_runs(runs)


def test_every_error_has_a_code_of_its_own() -> None:
    kinds = {kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SealaneError)}
    assert set(CODES.values()) == kinds
    assert CODES["topic-not-found"] is TopicNotFound


@pytest.mark.parametrize(
    "error",
    [TopicNotFound("shop/orders", "make it"), LimitExceeded("payload", 5, 7), InvalidName("topic", "a b", "no")],
)
def test_an_error_arrives_as_what_it_was(error: SealaneError) -> None:
    code, text, fields = msgspec.msgpack.decode(msgspec.msgpack.encode(fault_of(error)))
    again = error_of(code, text, fields)
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


def test_of_an_unexpected_error_nothing_is_told() -> None:
    code, text, fields = fault_of(ValueError("the secret is 1234"))
    assert (code, fields) == (INTERNAL, {})
    assert "1234" not in text


def test_a_code_that_is_not_known_is_an_error_all_the_same() -> None:
    error = error_of("from-the-future", "something", {"_private": 1, "no name": 2, "size": 3})
    assert type(error) is SealaneError
    fields: dict[str, Any] = vars(error)
    assert fields == {"size": 3}
