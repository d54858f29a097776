"""Messages of the lake are published once more, each once, however often the job is begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from sealane.errors import InvalidArgument
from sealane.pipeline.bulk import replaying
from sealane.pipeline.bulk.replaying import NoPayloads, Order, replay
from sealane.pipeline.cycle import run_cycle
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.keeping import keys_path
from sealane.pipeline.settings import PipelineSettings
from sealane.testing.node_process import NodeProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from sealane.client.sync import SyncLane, SyncMessage


class Stopped(Exception):
    pass


def test_from_the_lake_to_a_topic_once_and_in_order(
    spark: SparkSession,
    node: NodeProcess,
    lane: SyncLane,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replaying, "PORTION_OFFSETS", 20)
    monkeypatch.setattr(replaying, "PORTION_BYTES", 30)
    for number in range(50):
        parity = "odd" if number % 2 else "even"
        lane.publish(topic, b"%03d" % number, key=b"k%d" % (number % 3), headers={"parity": parity})
    settings = PipelineSettings(lake=tmp_path / "lake", topics=topic, url=node.url, bodies="sealed")
    run_cycle(spark, settings)
    lake, keys = Lake(settings.lake), keys_path(settings)
    order = Order(f"default/{topic}", f"{topic}-again")

    tried = replay(spark, lake, lane, order, keys, dry_run=True)
    assert (tried.messages, tried.published) == (50, 0)
    assert order.target not in [name.removeprefix("default/") for name in lane.topics()]

    def stop_at_the_second(done: int, total: int) -> None:
        assert total == 50
        if done == 40:
            raise Stopped

    with pytest.raises(Stopped):
        replay(spark, lake, lane, order, keys, told=stop_at_the_second)
    again = replay(spark, lake, lane, order, keys)
    assert (again.messages, again.published, again.before) == (50, 10, 40)
    assert [message.payload for message in _taken(lane, order.target, 50)] == [b"%03d" % number for number in range(50)]

    # Where nothing was noted, the node knows what it has.
    for notes in (lake.root / "_jobs").iterdir():
        notes.unlink()
    assert replay(spark, lake, lane, order, keys).published == 0

    # What comes into the lake after the job has begun is another job's.
    lane.publish(topic, b"050", headers={"parity": "even"})
    run_cycle(spark, settings)
    grown = replay(spark, lake, lane, order, keys)
    assert (grown.messages, grown.published, grown.before) == (50, 0, 50)
    assert replay(spark, lake, lane, replace(order, name="all of them"), keys, dry_run=True).messages == 51

    waits: list[float] = []
    odd = replace(order, target=f"{topic}-odd", where="headers['parity'] = 'odd'", rate=1_000_000.0)
    assert replay(spark, lake, lane, odd, keys, wait=waits.append).published == 25
    assert waits
    taken = _taken(lane, odd.target, 25)
    assert {message.headers["parity"] for message in taken} == {"odd"}
    assert {message.key for message in taken} == {b"k0", b"k1", b"k2"}


def test_what_was_left_out_cannot_be_replayed(
    spark: SparkSession, node: NodeProcess, lane: SyncLane, topic: str, tmp_path: Path
) -> None:
    settings = PipelineSettings(lake=tmp_path / "lake", topics=topic, url=node.url)
    lake, keys = Lake(settings.lake), keys_path(settings)
    with pytest.raises(InvalidArgument, match="no tables yet"):
        replay(spark, lake, lane, Order(f"default/{topic}", "b"), keys)
    lane.publish(topic, b"a")
    run_cycle(spark, settings)
    with pytest.raises(NoPayloads, match="left-out"):
        replay(spark, lake, lane, Order(f"default/{topic}", "b"), keys)


def _taken(lane: SyncLane, topic: str, count: int) -> list[SyncMessage]:
    taken = []
    for message in lane.consume(topic, "reader"):
        taken.append(message)
        if len(taken) == count:
            break
    return taken
