"""A full disk, and a lake that was damaged: one line says what is wrong and what to do, and the way out is one."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner, Result

from sealane.cli.main import app
from sealane.pipeline.lake.tables import DELIVERIES, RAW_MESSAGES, Lake
from sealane.testing.node_process import NodeProcess
from tests.spark.consuming import consume
from tests.spark.pipeline.killing.oracle import rows_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane

DISK_KIBIBYTES = 1024
PAGE_KIBIBYTES = 4


class Typed:
    """`sealane pipeline …` on one lake, with the session of the tests."""

    def __init__(self, node: NodeProcess, lake: Path, data: Path, topic: str) -> None:
        self.lake = lake
        self._data = data
        self._environment = {"SEALANE_URL": node.url, "SEALANE_PIPELINE__TOPICS": topic}

    def run(self, *command: str) -> Result:
        arguments = ["pipeline", *command, "--lake", str(self.lake), "--data", str(self._data)]
        return CliRunner().invoke(app, arguments, env=self._environment)

    def take_in(self) -> None:
        done = self.run("run", "--once")
        assert done.exit_code == 0, done.output

    def refused(self) -> str:
        """What it says, in one line and without a stack of Java's or ours."""
        done = self.run("run", "--once")
        assert done.exit_code == 1, done.output
        (line,) = (line for line in done.output.splitlines() if line.startswith("error: "))
        assert "Traceback" not in done.output
        assert "\tat " not in done.output
        return line

    def offsets(self) -> list[int]:
        return sorted(row["offset"] for row in rows_of(self.lake, RAW_MESSAGES))

    def settled(self) -> list[int]:
        return sorted(row["offset"] for row in rows_of(self.lake, DELIVERIES))


@pytest.fixture
def typed(spark: SparkSession, node: NodeProcess, topic: str, tmp_path: Path) -> Typed:
    return Typed(node, tmp_path / "lake", tmp_path / "data", topic)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "disk"
    path.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_KIBIBYTES}k", "tmpfs", str(path)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("a small file system cannot be mounted here; run this test as root")
    yield path
    subprocess.run(["umount", "--lazy", str(path)], check=True)


def test_a_full_disk_is_told_and_the_next_run_goes_on(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str, tmp_path: Path, small_disk: Path
) -> None:
    typed = Typed(node, small_disk / "lake", tmp_path / "data", topic)
    lane.publish_many(topic, [b"%d" % number for number in range(20)])
    consume(lane, topic, 10)
    typed.take_in()
    lane.publish_many(topic, [b"%d" % number for number in range(20, 40)])
    consume(lane, topic, 20)
    for pages in (0, 3, 9):  # It is full at once, when a query begins, and within a step.
        fill(small_disk, pages)
        said = typed.refused()
        assert "no space is left" in said
        assert str(typed.lake) in said
        assert "free some" in said
        assert len(typed.offsets()) == len(set(typed.offsets()))
        (small_disk / "ballast").unlink()
    typed.take_in()
    assert typed.offsets() == list(range(40))
    assert typed.settled() == list(range(30))


def fill(disk: Path, pages: int) -> None:
    """Leave so many pages free."""
    free = shutil.disk_usage(disk).free - pages * PAGE_KIBIBYTES * 1024
    (disk / "ballast").write_bytes(bytes(free))


def test_a_damaged_checkpoint_is_named_and_the_way_out_is_one(typed: Typed, lane: SyncLane, topic: str) -> None:
    lane.publish_many(topic, [b"%d" % number for number in range(20)])
    consume(lane, topic, 10)
    typed.take_in()
    newest = max((typed.lake / "checkpoints" / "history" / "commits").glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_bytes(b"")
    said = typed.refused()
    assert f"{newest}, of Spark's checkpoint, cannot be read" in said
    assert f"remove it and .{newest.name}.crc beside it" in said
    newest.unlink()
    newest.with_name(f".{newest.name}.crc").unlink()
    consume(lane, topic, 10)
    typed.take_in()
    assert (typed.offsets(), typed.settled()) == (list(range(20)), list(range(20)))

    offsets = typed.lake / "checkpoints" / "messages" / "offsets"
    newest = max(offsets.glob("[0-9]*"), key=lambda path: int(path.name))
    newest.write_bytes(newest.read_bytes()[:-9])
    said = typed.refused()
    assert f"{newest}, of Spark's checkpoint, cannot be read" in said
    assert "move it away: the next run takes in again all that the node still has" in said
    typed.lake.rename(typed.lake.with_name("away"))
    typed.take_in()
    assert (typed.offsets(), typed.settled()) == (list(range(20)), list(range(20)))


def test_a_damaged_record_of_deliveries_is_named_and_they_are_computed_again(
    typed: Typed, lane: SyncLane, topic: str
) -> None:
    lane.publish_many(topic, [b"%d" % number for number in range(20)])
    consume(lane, topic, 10)
    typed.take_in()
    deliveries = Lake(typed.lake).path(DELIVERIES)
    (record, *_) = deliveries.glob("_log/history/*.json")
    record.write_bytes(b"")
    said = typed.refused()
    assert str(record) in said
    assert f"remove the directory {deliveries}, and compute the table again by: sealane pipeline backfill" in said
    shutil.rmtree(deliveries)
    assert typed.run("backfill").exit_code == 0
    consume(lane, topic, 10)
    typed.take_in()
    assert typed.settled() == list(range(20))


def test_what_stops_a_step_is_told_in_a_line(typed: Typed, lane: SyncLane, topic: str) -> None:
    """A topic that was made again has other messages at the offsets that the lake knows."""
    lane.publish_many(topic, [b"%d" % number for number in range(20)])
    typed.take_in()
    lane.delete_topic(topic)
    lane.publish_many(topic, [b"%d" % number for number in range(3)])
    said = typed.refused()
    assert f"the step 'messages' of the lake {typed.lake} was stopped: topic" in said
    assert "was deleted and made again" in said
