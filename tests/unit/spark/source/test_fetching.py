"""Ranges of a log as an executor reads them from a real node: exactly, in order, whatever happens meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.client.sync import SyncLane
from sealane.engine import Stored
from sealane.errors import TopicNotFound
from sealane.message import Limits, Stamp, from_payloads
from sealane.spark.errors import DataLoss, NodeUnreachable, TopicRecreated
from sealane.spark.options.access import Access, find_access, lane_of
from sealane.spark.source.rows import reading, shaping
from sealane.spark.source.rows.columns import MESSAGE_SCHEMA
from sealane.spark.source.rows.fetching import Range, fetch
from sealane.spark.source.rows.reading import cut_to
from sealane.testing.node_process import NodeProcess

DEADLINE_SECONDS = 30.0
READ_BYTES = 20_000


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    settings = {"node.retention_check_seconds": 0.05}
    with NodeProcess(tmp_path_factory.mktemp("node") / "data", settings) as running:
        yield running


@pytest.fixture
def access(node: NodeProcess) -> Access:
    return find_access({"url": node.url, "retrySeconds": "20"})


@pytest.fixture
def lane(access: Access) -> SyncLane:
    return lane_of(access)


@pytest.fixture
def small_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a few thousand messages take several reads."""
    monkeypatch.setattr(reading, "READ_BYTES", READ_BYTES)


def filled(lane: SyncLane, topic: str, *sizes: int) -> Range:
    """A topic with batches of so many numbered messages, as the range of all of them."""
    lane.create_topic(topic)
    number = 0
    for size in sizes:
        lane.publish_many(topic, [b"%d" % each for each in range(number, number + size)])
        number += size
    return whole(lane, topic)


def whole(lane: SyncLane, topic: str) -> Range:
    (log,) = lane.logs(topic)
    (partition,) = log.partitions
    return Range(log.name, log.incarnation, partition.partition, partition.start, partition.end)


def part(range: Range, start: int, stop: int) -> Range:
    return Range(range.topic, range.incarnation, range.partition, start, stop)


def numbers(batches: Iterable[pa.RecordBatch]) -> list[int]:
    """What the payloads say; and every row's offset is the number in it."""
    found = []
    for batch in batches:
        batch.validate(full=True)
        assert batch.schema.equals(MESSAGE_SCHEMA)
        some = [int(payload) for payload in batch["payload"].to_pylist()]
        assert batch["offset"].to_pylist() == some
        found += some
    return found


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not happened():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


# --- exactly the range ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("start", "stop"), [(0, 5_000), (0, 1), (4_999, 5_000), (17, 4_321), (1_000, 2_000)])
def test_a_range_comes_exactly_and_in_order(
    access: Access, lane: SyncLane, small_reads: None, start: int, stop: int
) -> None:
    everything = filled(lane, f"exact-{start}-{stop}", 1_000, 1_500, 500, 1, 1_999)
    assert numbers(fetch(access, part(everything, start, stop))) == list(range(start, stop))


def test_an_empty_range_yields_nothing(access: Access, lane: SyncLane) -> None:
    everything = filled(lane, "empty", 10)
    assert list(fetch(access, part(everything, 5, 5))) == []


def test_small_batches_come_together(access: Access, lane: SyncLane) -> None:
    everything = filled(lane, "single", *[1] * 300)
    (batch,) = fetch(access, everything)
    assert numbers([batch]) == list(range(300))


def test_so_much_comes_together_and_no_more(access: Access, lane: SyncLane, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shaping, "ROWS_AT_ONCE", 100)
    everything = filled(lane, "together", 60, 40, 1, 250, 99, 2)
    batches = list(fetch(access, everything))
    assert [batch.num_rows for batch in batches] == [100, 1, 250, 99, 2]
    assert numbers(batches) == list(range(452))


def test_columns_say_where_a_message_is_and_what_it_has(access: Access, lane: SyncLane) -> None:
    lane.create_topic("told")
    receipt = lane.publish("told", b"0", key=b"k", headers={"region": "eu"}, priority=7, ttl=60, delay=30)
    (batch,) = fetch(access, whole(lane, "told"))
    (row,) = batch.to_pylist()
    assert row["id"] == receipt.id.bytes
    assert (row["key"], row["headers"], row["priority"]) == (b"k", [("region", "eu")], 7)
    assert (row["domain"], row["topic"], row["partition"], row["offset"]) == ("default", "told", 0, 0)
    assert row["created"] < row["deliver_at"] < row["expires"]
    assert len(row["producer"]) == 16


def test_who_has_enough_stops(access: Access, lane: SyncLane, small_reads: None) -> None:
    everything = filled(lane, "enough", *[500] * 20)
    rows = fetch(access, everything)
    assert next(rows).num_rows
    del rows
    wait_until(lambda: not any("sealane-read" in thread.name for thread in threading.enumerate()))


# --- what happens meanwhile -------------------------------------------------------------------------------------------


def test_a_node_that_restarts_in_the_middle_is_read_on_no_row_twice(
    tmp_path: Path, small_reads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaping, "ROWS_AT_ONCE", 500)
    node = NodeProcess(tmp_path / "data").start()
    access = find_access({"url": node.url})
    everything = filled(lane_of(access), "restart", *[500] * 20)
    rows = fetch(access, everything)
    first = next(rows)
    node.kill()
    coming_back = threading.Thread(target=node.start)
    coming_back.start()
    assert numbers([first, *rows]) == list(range(10_000))
    coming_back.join()
    lane_of(access).close()
    node.stop()


def test_a_node_that_stays_away_is_named_with_what_was_to_be_read(
    tmp_path: Path, small_reads: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shaping, "ROWS_AT_ONCE", 500)
    with NodeProcess(tmp_path / "data") as node:
        access = find_access({"url": node.url, "retrySeconds": "0"})
        everything = filled(lane_of(access), "away", *[500] * 20)
        rows = fetch(access, everything)
        next(rows)
        node.kill()
        with pytest.raises(NodeUnreachable) as error:
            list(rows)
    assert node.url in str(error.value)
    assert "topic 'default/away' partition 0 from offset " in str(error.value)


def test_a_topic_that_was_made_again_is_not_read(access: Access, lane: SyncLane) -> None:
    before = filled(lane, "again", 10)
    lane.delete_topic("again")
    after = filled(lane, "again", 20)
    with pytest.raises(TopicRecreated) as error:
        list(fetch(access, before))
    assert (error.value.expected, error.value.found) == (before.incarnation, after.incarnation)


def test_a_topic_that_is_gone_is_not_found(access: Access, lane: SyncLane) -> None:
    before = filled(lane, "gone", 10)
    lane.delete_topic("gone")
    with pytest.raises(TopicNotFound, match="default/gone"):
        list(fetch(access, before))


def test_messages_past_retention_are_named(access: Access, lane: SyncLane) -> None:
    everything = filled(lane, "retention", 100, 50)
    lane.configure_topic("retention", retention_seconds=0)
    wait_until(lambda: whole(lane, "retention").start == 150)
    lane.configure_topic("retention", retention_seconds=3_600)
    lane.publish_many("retention", [b"%d" % number for number in range(150, 200)])
    with pytest.raises(DataLoss) as error:
        list(fetch(access, part(everything, 30, 200)))
    assert "default/retention partition 0 offsets [30, 150)" in str(error.value)
    assert numbers(fetch(access, part(everything, 30, 200), fail_on_data_loss=False)) == list(range(150, 200))
    with pytest.raises(DataLoss, match=r"\[30, 120\)"):
        list(fetch(access, part(everything, 30, 120)))
    assert list(fetch(access, part(everything, 30, 120), fail_on_data_loss=False)) == []


def test_a_log_that_ends_too_early_is_a_loss(access: Access, lane: SyncLane) -> None:
    everything = filled(lane, "short", 10)
    with pytest.raises(DataLoss, match=r"\[10, 25\)"):
        list(fetch(access, part(everything, 0, 25)))


# --- holes ------------------------------------------------------------------------------------------------------------


def stored(base: int, count: int) -> Stored:
    payloads = [b"%d" % offset for offset in range(base, base + count)]
    return Stored(base, from_payloads(payloads, Stamp(0, bytes(16)), limits=Limits()))


@given(
    parts=st.lists(st.tuples(st.integers(0, 4), st.integers(1, 5)), max_size=8),
    start=st.integers(0, 30),
    length=st.integers(0, 30),
)
def test_of_what_a_log_has_exactly_the_range_is_taken_and_every_gap_is_told(
    parts: list[tuple[int, int]], start: int, length: int
) -> None:
    found, end = [], 0
    for gap, count in parts:
        found.append(stored(end + gap, count))
        end += gap + count
    wanted = range(start, start + length)
    there = {offset for base, batch in found for offset in range(base, base + len(batch))}
    place = Range("default/holes", 1, 0, wanted.start, wanted.stop)

    taken: list[int] = []
    for base, batch in cut_to(place, found, fail_on_data_loss=False):
        assert batch.payloads() == [b"%d" % offset for offset in range(base, base + len(batch))]
        taken += range(base, base + len(batch))
    assert taken == [offset for offset in wanted if offset in there]

    missing = [offset for offset in wanted if offset not in there]
    if missing:
        with pytest.raises(DataLoss) as error:
            list(cut_to(place, found))
        (loss,) = error.value.losses
        assert loss.start == missing[0]
        assert set(range(loss.start, loss.stop)) <= set(missing)
        assert loss.stop in there or loss.stop == wanted.stop
    else:
        list(cut_to(place, found))


def test_what_is_left_out_is_told_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    list(cut_to(Range("default/holes", 1, 0, 0, 9), [stored(0, 2), stored(5, 2)], fail_on_data_loss=False))
    assert [record.getMessage() for record in caplog.records] == [
        "messages that were to be read are gone lost='default/holes partition 0 offsets [2, 5)'",
        "messages that were to be read are gone lost='default/holes partition 0 offsets [7, 9)'",
    ]
