"""Which messages of a dead-letter topic are those that the lake tells of: these, and no other ones."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyroaring import BitMap64

from sealane.message.schema import HEADERS_TYPE
from sealane.pipeline.bulk.dead_letters import DIED_SECONDS, Wanted

TIME_US = 1_700_000_000_000_000
SECOND_US = 1_000_000


def letter(partition: int, offset: int, time_us: int = TIME_US, number: int | None = None) -> dict[str, Any]:
    story = {"partition": str(partition), "offset": str(offset), "time": str(time_us)}
    headers = [("region", "eu"), *((f"sealane-dead-{name}", value) for name, value in story.items())]
    return {"id": _id(offset if number is None else number), "headers": headers}


def _id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def found(wanted: Wanted, *letters: dict[str, Any]) -> list[int]:
    columns = {
        "id": pa.array([each["id"] for each in letters], pa.binary(16)),
        "headers": pa.array([each["headers"] for each in letters], HEADERS_TYPE),
    }
    offsets = wanted.offsets_in(pa.RecordBatch.from_pydict(columns), 100)
    assert isinstance(offsets, BitMap64)
    return list(offsets)


def test_they_are_found_by_where_they_were() -> None:
    wanted = Wanted([(0, 5, _id(5), TIME_US), (1, 7, _id(7), TIME_US)])
    letters = (letter(0, 5), letter(1, 5), letter(0, 7), letter(1, 7), letter(0, 6))
    assert found(wanted, *letters) == [100, 103]


def test_one_that_died_twice_is_told_apart_by_its_time() -> None:
    later = TIME_US + 60 * SECOND_US
    letters = (letter(0, 5), letter(0, 5, later))
    assert found(Wanted([(0, 5, _id(5), TIME_US + 3)]), *letters) == [100]
    assert found(Wanted([(0, 5, _id(5), later + 3)]), *letters) == [101]
    assert found(Wanted([(0, 5, _id(5), TIME_US), (0, 5, _id(5), later)]), *letters) == [100, 101]
    edge = TIME_US + round(DIED_SECONDS * SECOND_US)
    assert found(Wanted([(0, 5, _id(5), edge)]), letter(0, 5)) == [100]
    assert found(Wanted([(0, 5, _id(5), edge + 1)]), letter(0, 5)) == []


def test_another_message_at_the_same_place_of_a_topic_made_anew_is_none() -> None:
    assert found(Wanted([(0, 5, _id(5), TIME_US)]), letter(0, 5, number=6)) == []
    assert found(Wanted([(0, 5, None, TIME_US)]), letter(0, 5, number=6)) == [100]


def test_what_has_no_story_or_an_odd_one_is_none() -> None:
    wanted = Wanted([(0, 5, _id(5), TIME_US)])
    plain = {"id": _id(5), "headers": None}
    odd = letter(0, 5)
    odd["headers"] = [(name, "soon" if name.endswith("time") else value) for name, value in odd["headers"]]
    assert found(wanted, plain, odd) == []
    assert found(wanted) == []
