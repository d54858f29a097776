"""Parts of the grpc door that need no socket: generated code, statuses, room."""

from __future__ import annotations

import asyncio
import inspect
from pathlib import Path

import grpc
import pytest

from sealane import errors
from sealane.doors.grpc.room import Room
from sealane.doors.grpc.statuses import DETAIL_CHARS_MAX, STATUSES, UNEXPECTED, status_of, told
from sealane.errors import InvalidArgument, LimitExceeded, RateLimited, SealaneError, TooManyConnections
from tests.grpc_code import GENERATED, SOURCE, generate

# --- generated code ---------------------------------------------------------------------------------------------------


def test_the_code_that_is_here_is_what_the_proto_says(tmp_path: Path) -> None:
    """`make proto` brings it up to date."""
    generate(tmp_path)
    assert [(SOURCE / name).read_bytes() == (tmp_path / name).read_bytes() for name in GENERATED] == [True] * 3


def test_only_what_is_generated_here_is_made(tmp_path: Path) -> None:
    generate(tmp_path)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()} == set(GENERATED)


# --- statuses ---------------------------------------------------------------------------------------------------------

KINDS = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, SealaneError)]


def test_a_narrower_class_stands_before_a_wider_one() -> None:
    kinds = [kind for kind, _ in STATUSES]
    for place, kind in enumerate(kinds):
        assert not any(issubclass(later, kind) for later in kinds[place + 1 :]), kind


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InvalidArgument("x", "y"), grpc.StatusCode.INVALID_ARGUMENT),
        (LimitExceeded("payload", 1, 2), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.InvalidName("topic", "x", "y"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.InvalidBatch("x"), grpc.StatusCode.INVALID_ARGUMENT),
        (errors.TopicNotFound("x"), grpc.StatusCode.NOT_FOUND),
        (errors.Forbidden("a", "publish", "x"), grpc.StatusCode.PERMISSION_DENIED),
        (errors.Unauthenticated("x"), grpc.StatusCode.UNAUTHENTICATED),
        (RateLimited("principal 'a'", "messages", 1, 0.25), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.QueueFull("x", 1, 1), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.StorageFull(1, 1), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (TooManyConnections("here", 1, "x"), grpc.StatusCode.RESOURCE_EXHAUSTED),
        (errors.LeaseLost("x", "y"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.ModeConflict("x", "y"), grpc.StatusCode.FAILED_PRECONDITION),
        (errors.AlreadyExists("topic", "x"), grpc.StatusCode.ALREADY_EXISTS),
        (errors.Closed("x"), grpc.StatusCode.UNAVAILABLE),
        (errors.Unavailable("x"), grpc.StatusCode.UNAVAILABLE),
        (errors.StorageFailed("x"), grpc.StatusCode.UNAVAILABLE),
        (errors.CorruptData("x"), grpc.StatusCode.DATA_LOSS),
        (errors.DeadlineExceeded("x"), grpc.StatusCode.DEADLINE_EXCEEDED),
    ],
)
def test_each_error_has_its_status(error: SealaneError, status: grpc.StatusCode) -> None:
    assert status_of(error) is status
    code, text, metadata = told(error)
    assert (code, text) == (status, str(error))
    assert dict(metadata)["sealane-error"] == type(error).__name__
    assert ("retry-after" in dict(metadata)) == (status is grpc.StatusCode.RESOURCE_EXHAUSTED)


def test_a_rate_limit_says_for_how_long() -> None:
    assert dict(told(RateLimited("principal 'a'", "messages", 1, 0.25))[2])["retry-after"] == "0.250"


def test_of_what_nobody_expected_nothing_is_told() -> None:
    assert told(ZeroDivisionError("a secret")) == (grpc.StatusCode.INTERNAL, UNEXPECTED, ())


def test_a_text_is_cut_at_its_limit() -> None:
    whole = InvalidArgument("x", "y" * (DETAIL_CHARS_MAX - 3))
    assert told(whole)[1] == str(whole)
    assert len(str(whole)) == DETAIL_CHARS_MAX
    assert len(told(InvalidArgument("x", "y" * DETAIL_CHARS_MAX))[1]) == DETAIL_CHARS_MAX


# --- room -------------------------------------------------------------------------------------------------------------


async def test_who_comes_when_there_is_no_room_waits_until_there_is() -> None:
    outer = Room(10)
    inner = Room(5, outer)
    await inner.wait()
    inner.take(7)  # Whole, while the limit is not reached.
    assert (inner.taken_bytes, outer.taken_bytes) == (7, 7)
    waiting = asyncio.create_task(inner.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    inner.give(3)
    await asyncio.wait_for(waiting, 10)


async def test_one_streams_room_is_among_that_of_all() -> None:
    outer = Room(10)
    one, two = Room(8, outer), Room(8, outer)
    one.take(6)
    two.take(6)
    waiting = asyncio.create_task(one.wait())
    await asyncio.sleep(0)
    assert not waiting.done(), "it has room of its own, and all of them have none"
    two.give(6)
    await asyncio.wait_for(waiting, 10)
    assert outer.taken_bytes == 6
