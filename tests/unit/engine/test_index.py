"""The index: places in compact columns, what is missing is what was lost, and a segment's index survives as a file."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine import PartitionKey
from sealane.engine.local import record
from sealane.engine.local.index import LogIndex, Row, SegmentIndex
from sealane.engine.local.record import JOURNAL, MESSAGES

ORDERS = PartitionKey("default", "orders", 1, 0)
BILLS = PartitionKey("other", "bills", 2, 3)


def row(base: int, count: int, *, file: int = 1, time_us: int = 0) -> Row:
    return Row(base, count, file, 100 + base, 10, time_us, base, 1)


def index(*rows: Row) -> LogIndex:
    made = LogIndex()
    for each in rows:
        made.append(each)
    return made


def test_the_row_that_holds_an_offset_is_found() -> None:
    log = index(row(0, 5), row(5, 3), row(10, 2))
    assert [log.find(offset) for offset in (0, 4, 5, 7)] == [0, 0, 1, 1]
    assert log.find(8) == 2, "in a gap: the next row"
    assert [log.find(offset) for offset in (10, 11, 12)] == [2, 2, 3]
    assert log.row(1) == row(5, 3)
    assert log.end == 12


def test_what_no_row_holds_is_lost() -> None:
    log = index(row(2, 3), row(10, 2))
    log.end = 20
    assert log.lost() == ((0, 2), (5, 10), (12, 20))
    assert index(row(0, 3), row(3, 1)).lost() == ()
    assert LogIndex().lost() == ()


def test_entries_never_overlap() -> None:
    with pytest.raises(ValueError, match="overlaps"):
        index(row(0, 5), row(4, 1))


def test_a_trim_forgets_whole_rows_and_keeps_the_one_it_cuts() -> None:
    log = index(row(0, 5), row(5, 5), row(10, 5))
    log.trim(7)
    assert [each.base for each in log.rows()] == [5, 10]
    assert (log.start, log.end, log.lost()) == (7, 15, ())
    log.trim(3)
    assert log.start == 7
    log.trim(15)
    assert (len(log), log.start, log.end) == (0, 15, 15)


def test_a_quarantined_row_is_lost_and_only_if_it_is_still_that_one() -> None:
    log = index(row(0, 5), row(5, 5), row(10, 5))
    assert not log.remove(5, file=2)
    assert not log.remove(6, file=1)
    assert log.remove(5, file=1)
    assert not log.remove(5, file=1)
    assert log.lost() == ((5, 10),)


def test_times_are_searched() -> None:
    log = index(row(0, 5, time_us=10), row(5, 5, time_us=20), row(10, 5, time_us=20))
    assert [log.offset_at(time) for time in (0, 10, 11, 20, 21)] == [0, 0, 5, 5, 15]
    log.trim(7)
    assert log.offset_at(0) == 7


def test_files_are_swapped_in_one_step() -> None:
    log = index(row(0, 5, file=1), row(5, 5, file=2), row(10, 5, file=3))
    log.replace({1, 2}, [row(0, 10, file=9)])
    assert list(log.rows()) == [row(0, 10, file=9), row(10, 5, file=3)]
    log.trim(10)
    log.replace({3}, [row(0, 10, file=8), row(10, 5, file=8)])
    assert list(log.rows()) == [row(10, 5, file=8)]
    log.replace({8}, [])
    assert len(log) == 0
    assert log.end == 15


rows = st.builds(
    Row,
    st.integers(0, 2**64 - 2**33),
    st.integers(1, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    *[st.integers(0, 2**64 - 1)] * 4,
    st.integers(0, 255),
)


@given(st.lists(st.tuples(st.sampled_from([ORDERS, BILLS]), st.sampled_from([MESSAGES, JOURNAL]), rows), max_size=20))
def test_a_segments_index_survives_as_a_file(entries) -> None:
    made = SegmentIndex(5)
    for partition, kind, each in entries:
        made.add(partition, kind, each)
    made.mention(BILLS, JOURNAL, 2**60)
    made.last_sequence, made.time_us = 17, 99
    read = SegmentIndex.decode(made.encode())
    assert read is not None
    assert (read.first_sequence, read.last_sequence, read.time_us) == (5, 17, 99)
    assert read.ends == made.ends
    assert read.partitions == made.partitions
    found = {
        (partition, kind): [Row(*map(int, each)) for each in zip(*columns, strict=True)]
        for partition, kind, columns in read.logs(77)
    }
    expected: dict = {}
    for partition, kind, each in entries:
        expected.setdefault((partition, kind), []).append(each._replace(file=77))
    assert found == expected


@given(st.data())
def test_a_damaged_index_file_is_not_believed(data) -> None:
    made = SegmentIndex(5)
    made.add(ORDERS, MESSAGES, row(0, 5))
    content = bytearray(made.encode())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    assert SegmentIndex.decode(bytes(content)) is None


@pytest.mark.parametrize("change", ["name", "number", "shorter", "longer"])
def test_an_index_that_says_what_cannot_be_is_not_believed_even_with_its_checksum(change) -> None:
    made = SegmentIndex(5)
    made.add(ORDERS, MESSAGES, row(0, 5))
    content = bytearray(made.encode()[:-8])
    names = content.index(ORDERS.topic.encode())
    match change:
        case "name":
            content[names] = 0xFF
        case "number":
            content[names + len(ORDERS.topic)] = 7  # Of the partition that its row is of.
        case "shorter":
            del content[-3:]
        case "longer":
            content += b"more"
    assert SegmentIndex.decode(bytes(content) + record.checksum(bytes(content)).to_bytes(8, "little")) is None


def test_many_rows_join_a_log_at_once() -> None:
    made = SegmentIndex(1)
    for number in range(1_000):
        made.add(ORDERS, MESSAGES, row(number, 1))
    ((_, _, columns),) = made.logs(3)
    log = LogIndex()
    log.extend(columns)
    assert (len(log), log.end, log.row(999)) == (1_000, 1_000, row(999, 1, file=3))
