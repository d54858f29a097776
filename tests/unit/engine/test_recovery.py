"""Recovery, record by record: a torn end is cut, damage in the middle is named and survived."""

from __future__ import annotations

import itertools
import random
import struct
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine import PartitionKey
from sealane.engine.local import DiskFiles, record
from sealane.engine.local.index import SegmentIndex
from sealane.engine.local.record import JOURNAL, MESSAGES, Head
from sealane.engine.local.recovery import Recovered, recover
from sealane.engine.local.segment import HEADER_BYTES, INDEX_SUFFIX, SegmentHeader, segment_name
from sealane.errors import FormatTooNew

ORDERS = PartitionKey("default", "orders", 1, 0)
BILLS = PartitionKey("default", "bills", 1, 0)


class Log:
    """A write-ahead log made by hand, so that any byte of it can be spoilt."""

    def __init__(self, directory: Path) -> None:
        self.files = DiskFiles(directory)
        self.files.make_directory("wal")
        self.heads: list[tuple[str, int, Head]] = []
        self.sequence = 1

    def segment(self, records: int, *, slack_bytes: int = 256, nonce: bytes | None = None) -> str:
        """Add a segment. Record number n has message n of orders, message n of bills, and journal entry n of orders."""
        name = segment_name(self.sequence)
        nonce = nonce or b"%08d" % self.sequence
        data = SegmentHeader(record.FORMAT, nonce, self.sequence, 99).encode()
        for _ in range(records):
            number = self.sequence - 1
            bodies = [
                (MESSAGES, ORDERS, b"order %d" % number),
                (MESSAGES, BILLS, b"bill %d" % number),
                (JOURNAL, ORDERS, b"journal %d" % number),
            ]
            entries = [(record.describe(kind, key, 1, number, 1, body), body) for kind, key, body in bodies]
            buffers, head = record.encode_record(self.sequence, nonce, 1_000 + number, entries)
            self.heads.append((name, len(data), head))
            data += b"".join(buffers)
            self.sequence += 1
        self.write(name, 0, data + bytes(slack_bytes))
        return name

    def write(self, name: str, position: int, data: bytes) -> None:
        file = self.files.open(name, create=True)
        file.write_at(position, [data])
        file.close()

    def read(self, name: str) -> bytes:
        file = self.files.open(name)
        data = file.read_at(0, file.size)
        file.close()
        return data

    def flip(self, name: str, position: int) -> None:
        self.write(name, position, bytes([self.read(name)[position] ^ 0x10]))

    def body(self, number: int, entry: int) -> tuple[str, int]:
        """Where the body of an entry of record `number` (from 0) is."""
        name, start, head = self.heads[number]
        return name, start + list(head.bodies())[entry][1]

    def recover(self) -> Recovered:
        return recover(self.files, lambda: 0, itertools.count(1).__next__, skip=set())


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path)


def found(recovered: Recovered, partition: PartitionKey = ORDERS, kind: int = MESSAGES) -> list[int]:
    """The offsets that are there."""
    active = [recovered.active] if recovered.active is not None else []
    return [
        int(base)
        for segment in [*recovered.closed, *active]
        for key, each, columns in segment.index.logs(segment.number)
        if (key, each) == (partition, kind)
        for base in columns[0]
    ]


def end(recovered: Recovered, partition: PartitionKey = ORDERS, kind: int = MESSAGES) -> int:
    active = [recovered.active] if recovered.active is not None else []
    return max(segment.index.ends.get((partition, kind), 0) for segment in [*recovered.closed, *active])


def assert_untouched(recovered: Recovered) -> None:
    report = recovered.report
    assert (report.cut_bytes, report.repaired, report.quarantined, report.unexplained) == (0, 0, [], [])


# --- sound ----------------------------------------------------------------------------------------------------------


def test_an_empty_directory_is_a_log_without_records(log: Log) -> None:
    recovered = log.recover()
    assert (recovered.closed, recovered.active, recovered.next_sequence) == ([], None, 1)


def test_a_sound_log_is_found_whole_and_goes_on_where_it_ended(log: Log) -> None:
    for records in (3, 2, 4):
        name = log.segment(records)
    recovered = log.recover()
    assert found(recovered) == list(range(9))
    assert found(recovered, ORDERS, JOURNAL) == list(range(9))
    assert recovered.next_sequence == 10
    assert recovered.last_time_us == 1_008
    assert recovered.active is not None
    assert recovered.active.name == name
    assert recovered.active.end == len(log.read(name)) - 256
    assert (recovered.report.segments_scanned, recovered.report.records) == (3, 9)
    assert_untouched(recovered)


def test_a_closed_segment_with_a_sound_index_is_not_read(log: Log) -> None:
    log.segment(3)
    log.segment(2)
    first = log.recover().closed[0]
    log.write(first.name + INDEX_SUFFIX, 0, first.index.encode())
    log.flip(*log.body(1, 0))
    recovered = log.recover()
    assert (recovered.report.segments_trusted, recovered.report.segments_scanned) == (1, 1)
    assert found(recovered) == list(range(5))


@pytest.mark.parametrize("damage", ["flip", "cut", "other segment's"])
def test_an_index_that_is_not_sound_is_not_believed(log: Log, damage: str) -> None:
    log.segment(3)
    log.segment(2)
    closed = log.recover().closed[0]
    index = bytearray(closed.index.encode())
    if damage == "flip":
        index[len(index) // 2] ^= 1
    elif damage == "cut":
        del index[-4:]
    else:
        index = bytearray(SegmentIndex(77).encode())
    log.write(closed.name + INDEX_SUFFIX, 0, bytes(index))
    recovered = log.recover()
    assert recovered.report.segments_scanned == 2
    assert found(recovered) == list(range(5))


def test_the_index_of_a_segment_that_is_appended_to_again_is_removed(log: Log) -> None:
    name = log.segment(3)
    active = log.recover().active
    assert active is not None
    log.write(name + INDEX_SUFFIX, 0, active.index.encode())
    log.recover()
    assert not log.files.exists(name + INDEX_SUFFIX)


# --- torn -----------------------------------------------------------------------------------------------------------


def test_a_last_record_cut_at_any_byte_is_cut_off_and_the_rest_is_whole(tmp_path: Path) -> None:
    whole = Log(tmp_path / "whole")
    name = whole.segment(3)
    data = whole.read(name)
    _, start, head = whole.heads[-1]
    for length in range(head.record_bytes):
        log = Log(tmp_path / "torn")
        log.write(name, 0, data[: start + length] + bytes(head.record_bytes - length + 256))
        recovered = log.recover()
        report = recovered.report
        assert report.quarantined == []
        assert report.unexplained == []
        assert recovered.active is not None
        kept = found(recovered)
        # Once the head and all the bodies are there it is whole: the missing end of its tail is put back.
        assert kept in ([0, 1], [0, 1, 2])
        if kept == [0, 1]:
            assert recovered.active.end == start
            assert recovered.next_sequence == 3
            assert not any(log.read(name)[start:])
        else:
            assert log.read(name) == data
        assert_untouched(log.recover())


@given(st.integers(0, 2**32))
def test_a_last_record_of_which_any_sectors_are_missing_is_never_called_corruption(tmp_path_factory, seed) -> None:
    rng = random.Random(seed)
    log = Log(tmp_path_factory.mktemp("log"))
    name = log.segment(3)
    data = bytearray(log.read(name))
    _, start, head = log.heads[-1]
    for sector in range(start, start + head.record_bytes, 32):
        if rng.random() < 0.3:
            stop = min(sector + 32, start + head.record_bytes)
            data[sector:stop] = bytes(stop - sector)
    log.write(name, 0, bytes(data))
    recovered = log.recover()
    assert recovered.report.quarantined == []
    assert recovered.report.unexplained == []
    assert found(recovered) in ([0, 1], [0, 1, 2])
    assert_untouched(log.recover())


def test_a_segment_whose_first_write_was_torn_is_removed(log: Log) -> None:
    log.segment(3)
    name = log.segment(1)
    _, start, _ = log.heads[-1]
    log.write(name, 0, bytes(HEADER_BYTES) + log.read(name)[start : start + 20] + bytes(2_000))
    recovered = log.recover()
    assert found(recovered) == [0, 1, 2]
    assert not log.files.exists(name)
    assert recovered.next_sequence == 4
    assert recovered.report.cut_bytes > 0


def test_what_is_cut_may_be_written_over_and_stays_gone(log: Log) -> None:
    name = log.segment(3)
    _, start, head = log.heads[-1]
    log.write(name, start + head.record_bytes - 300, bytes(300))
    recovered = log.recover()
    assert recovered.active is not None
    assert recovered.report.cut_bytes > 0
    log.sequence, log.heads = 3, log.heads[:2]
    entry = record.describe(MESSAGES, ORDERS, 2, 2, 1, b"new")
    buffers, _ = record.encode_record(3, recovered.active.header.nonce, 5_000, [(entry, b"new")])
    log.write(name, recovered.active.end, b"".join(buffers))
    recovered = log.recover()
    assert found(recovered) == [0, 1, 2]
    assert_untouched(recovered)


# --- corrupt --------------------------------------------------------------------------------------------------------


def test_a_damaged_body_costs_its_entry_and_is_named(log: Log, caplog) -> None:
    log.segment(5)
    name, position = log.body(2, 0)
    log.flip(name, position)
    recovered = log.recover()
    assert found(recovered) == [0, 1, 3, 4]
    assert found(recovered, BILLS) == [0, 1, 2, 3, 4]
    (lost,) = recovered.report.quarantined
    assert (lost.file, lost.position, lost.partition, lost.kind, lost.span) == (
        name,
        position,
        ORDERS,
        MESSAGES,
        (2, 3),
    )
    assert (
        f"default/orders#1:0: messages 2–2 are lost: the checksum does not match at byte {position:,} of" in caplog.text
    )
    assert name in caplog.text


def test_a_damaged_journal_entry_is_named_as_such(log: Log) -> None:
    log.segment(5)
    log.flip(*log.body(2, 2))
    (lost,) = log.recover().report.quarantined
    assert (lost.partition, lost.kind) == (ORDERS, JOURNAL)
    assert "journal entries 2–2" in str(lost)


@pytest.mark.parametrize("part", ["head", "tail"])
def test_a_damaged_head_or_tail_is_restored_and_costs_nothing(log: Log, part: str) -> None:
    log.segment(5)
    name, start, head = log.heads[2]
    before = log.read(name)
    log.flip(name, start + 20 if part == "head" else start + head.record_bytes - 20)
    recovered = log.recover()
    assert found(recovered) == [0, 1, 2, 3, 4]
    assert (recovered.report.repaired, recovered.report.quarantined) == (1, [])
    assert log.read(name) == before
    assert_untouched(log.recover())


def test_a_damaged_header_is_restored_and_costs_nothing(log: Log) -> None:
    name = log.segment(3)
    log.flip(name, 20)
    recovered = log.recover()
    assert found(recovered) == [0, 1, 2]
    assert recovered.report.repaired == 1
    assert recovered.active is not None
    assert_untouched(log.recover())


def test_a_damaged_head_and_body_cost_the_body_and_are_named_by_the_tail(log: Log) -> None:
    log.segment(5)
    name, start, _ = log.heads[2]
    log.flip(name, start + 20)
    log.flip(*log.body(2, 1))
    recovered = log.recover()
    assert found(recovered) == [0, 1, 2, 3, 4]
    assert found(recovered, BILLS) == [0, 1, 3, 4]
    assert [lost.partition for lost in recovered.report.quarantined] == [BILLS]


def test_a_record_lost_beyond_telling_is_reported_by_place_and_shows_as_a_gap(log: Log) -> None:
    log.segment(5)
    name, start, head = log.heads[2]
    log.write(name, start, b"\xa5" * head.record_bytes)
    recovered = log.recover()
    assert found(recovered) == [0, 1, 3, 4]
    (lost,) = recovered.report.unexplained
    assert lost == (name, start, start + head.record_bytes)
    assert "beyond telling" in str(lost)


def test_several_kinds_of_damage_at_once_are_all_told(log: Log) -> None:
    log.segment(8)
    name = log.heads[0][0]
    log.flip(*log.body(0, 0))
    log.flip(name, log.heads[2][1] + 20)
    log.write(name, log.heads[4][1], b"\xa5" * log.heads[4][2].record_bytes)
    log.flip(*log.body(6, 2))
    recovered = log.recover()
    assert found(recovered) == [1, 2, 3, 5, 6, 7]
    assert found(recovered, ORDERS, JOURNAL) == [0, 1, 2, 3, 5, 7]
    report = recovered.report
    assert (len(report.quarantined), report.repaired, len(report.unexplained), report.cut_bytes) == (2, 1, 1, 0)


def test_the_last_record_of_a_closed_segment_was_synced_so_damage_to_it_is_corruption(log: Log) -> None:
    log.segment(3)
    log.segment(2)
    log.flip(*log.body(2, 0))
    recovered = log.recover()
    assert found(recovered) == [0, 1, 3, 4]
    assert [lost.span for lost in recovered.report.quarantined] == [(2, 3)]
    assert recovered.report.cut_bytes == 0


def test_a_closed_segment_that_is_damaged_as_a_whole_does_not_take_the_others_with_it(log: Log) -> None:
    log.segment(2)
    name = log.segment(2)
    log.segment(2)
    log.write(name, 0, b"\xa5" * (len(log.read(name)) - 256))
    recovered = log.recover()
    assert found(recovered) == [0, 1, 4, 5]
    assert [lost.file for lost in recovered.report.unexplained] == [name]


def test_damage_before_a_torn_record_is_corruption_and_the_torn_record_is_cut(log: Log) -> None:
    log.segment(4)
    name, start, head = log.heads[3]
    log.flip(*log.body(2, 0))
    log.write(name, start + head.head_bytes, bytes(head.record_bytes - head.head_bytes))
    recovered = log.recover()
    assert found(recovered) == [0, 1]
    assert [lost.span for lost in recovered.report.quarantined] == [(2, 3)]
    assert recovered.report.cut_bytes > 0


@pytest.mark.parametrize("left", [40, 200])
def test_damage_right_before_a_write_that_left_nothing_readable_is_corruption_too(log: Log, left: int) -> None:
    """The first sectors of the torn write are missing, and with them its head: some of its last bytes are there."""
    name = log.segment(3)
    log.flip(*log.body(1, 0))
    _, start, head = log.heads[2]
    whole = log.read(name)[start : start + head.record_bytes]
    log.write(name, start, bytes(head.record_bytes - 16 - left) + whole[-16 - left : -16] + bytes(16))
    recovered = log.recover()
    assert [str(item.partition) for item in recovered.report.quarantined] == [str(ORDERS)]
    assert (recovered.report.quarantined[0].span.start, end(recovered)) == (1, 2)
    assert found(recovered) == [0]
    assert found(recovered, BILLS) == [0, 1]
    assert recovered.report.cut_bytes > 0
    assert recovered.next_sequence == 3
    again = log.recover()
    assert again.report.quarantined == recovered.report.quarantined, "who opens it next is told the same"
    assert end(again) == 2


def test_the_offsets_of_what_was_lost_are_never_given_out_again(log: Log) -> None:
    log.segment(5)
    log.flip(*log.body(3, 1))
    log.flip(*log.body(3, 0))
    recovered = log.recover()
    assert (end(recovered), end(recovered, BILLS)) == (5, 5)
    log.segment(1)
    log.flip(*log.body(4, 1))
    recovered = log.recover()
    assert end(recovered, BILLS) == 6


# --- formats --------------------------------------------------------------------------------------------------------


def format_1(sequence: int, body: bytes, *, time_seconds: int, offset: int) -> bytes:
    """A segment as version 1 wrote it, spelt out byte by byte: its record heads had their time in whole seconds."""
    nonce = b"old-file"
    fixed = struct.pack("<8sHHI8sQQ16x", b"SEALWAL\0", 1, 0, 0, nonce, sequence, time_seconds * 1_000_000)
    header = fixed + struct.pack("<Q", record.checksum(fixed))
    names = b"default" + b"orders"
    entry = struct.pack("<BBHHHIIQQQQQ", 1, 0, 7, 6, 0, 0, 1, 1, 5, offset, len(body), record.checksum(body)) + names
    head_bytes = (44 + len(entry) + 7) // 8 * 8 + 8
    padded_body = body + bytes(-len(body) % 8)
    record_bytes = 2 * head_bytes + len(padded_body) + 8
    checked = struct.pack("<HH8sQQIII", 1, 0, nonce, record_bytes, sequence, time_seconds, head_bytes, 1) + entry
    checked = checked.ljust(head_bytes - 12, b"\0")
    block = checked + struct.pack("<Q", record.checksum(checked))
    return (
        header + b"SLRH" + block + padded_body + b"SLRT" + block + struct.pack("<I4s", head_bytes, b"SLRE") + bytes(64)
    )


def test_a_segment_of_format_1_is_read_and_left_as_it_is(log: Log) -> None:
    name = segment_name(1)
    log.write(name, 0, format_1(1, b"from long ago", time_seconds=1_600_000_000, offset=0))
    before = log.read(name)
    recovered = log.recover()
    assert_untouched(recovered)
    assert found(recovered) == [0]
    assert recovered.active is None, "new records go into a segment of the current format"
    (segment,) = recovered.closed
    assert segment.header.version == 1
    assert recovered.next_sequence == 2
    assert recovered.last_time_us == 1_600_000_000_999_999
    assert log.read(name) == before


def test_a_newer_format_is_refused_before_anything_is_changed(log: Log) -> None:
    log.segment(2)
    name = segment_name(3)
    header = SegmentHeader(record.FORMAT + 1, b"tomorrow", 3, 0).encode()
    log.write(name, 0, header + b"whatever a newer Sealane writes")
    before = log.read(name)
    with pytest.raises(FormatTooNew) as refused:
        log.recover()
    assert (refused.value.found, refused.value.supported) == (record.FORMAT + 1, record.FORMAT)
    assert log.read(name) == before
