"""Every workload runs, on real processes, and what it returns can be true."""

from __future__ import annotations

import pytest

from bench import crowd, disk, fan_out, growing, growth, memory, wire
from sealane.testing.node_process import NodeProcess

pytestmark = pytest.mark.slow

POSSIBLE_RATE = 50_000_000
"""No machine moves so many messages a second through three Python processes."""


@pytest.mark.parametrize(
    ("producer", "consumer", "count", "batch", "size"),
    [
        ("publish_many", "consume_batches", 2_500, 1_000, 1_024),
        ("send_blocking", "consume_blocking", 2_000, 1, 100),
    ],
)
def test_a_producer_and_a_consumer(tmp_path, producer, consumer, count, batch, size):
    found = wire.rate(tmp_path, producer, consumer, count=count, batch=batch, size=size)
    assert 100 < found < POSSIBLE_RATE


def test_latencies_of_a_topic_in_memory(tmp_path):
    receipt, received = wire.latencies(tmp_path, count=50, durable=False)
    assert len(receipt) == len(received) == 50
    assert receipt == sorted(receipt)
    assert min(receipt[0], received[0]) > 0


def test_fan_out_counts_every_consumers_deliveries(tmp_path):
    found = fan_out.rate(tmp_path, count=4_000, batch=1_000, consumers=3, processes=2)
    assert 100 < found < POSSIBLE_RATE


def test_a_crowd_receives_all_that_was_published(tmp_path):
    found = crowd.rate(tmp_path, count=10_000, batch=1_000, producers=2, consumers=2, partitions=4)
    assert 100 < found < POSSIBLE_RATE


def test_a_crowd_that_missed_something_gives_no_figure(tmp_path, monkeypatch):
    consumed = {"begun_ns": 0, "ended_ns": 1_000, "received": 1_999}
    monkeypatch.setattr(crowd, "together", lambda commands: [consumed, {"begun_ns": 0, "ended_ns": 1_000}])
    with pytest.raises(crowd.NotAllReceived, match=r"1,999 of 2,000"):
        crowd.rate(tmp_path, count=2_000, batch=1_000, producers=1, consumers=1, partitions=1)


def test_memory_with_messages_is_more_than_that_of_an_idle_node(tmp_path):
    (tmp_path / "idle").mkdir()
    idle = memory.idle(tmp_path / "idle")
    stored = memory.stored_in_parts(tmp_path, messages=100_000)
    assert 20 < idle < stored.published.resident_mb <= stored.resident_mb < 1_000
    assert stored.published.private_mb < stored.published.resident_mb


def test_memory_over_time_is_read_each_second(tmp_path):
    readings = memory.over_time(tmp_path, seconds=3, per_second=5_000)
    assert 2 <= len(readings) <= 4
    assert all(0 <= moment <= 3 and 20 < megabytes < 1_000 for moment, megabytes in readings)


def test_compacted_messages_take_about_their_payloads(tmp_path):
    use = disk.compacted_in_parts(tmp_path, messages=50_000)
    assert 5.0 < use.compacted_mb < 8.0, "random payloads cannot be compressed"
    assert use.all_mb > use.compacted_mb + use.log_mb


def test_the_disk_itself_is_measured_and_left_as_it_was(tmp_path):
    assert 1 < disk.sequential(tmp_path) < 100_000
    assert not list(tmp_path.iterdir())


def test_the_cost_of_work_on_a_node_that_grew_in_every_way(tmp_path):
    amounts = growth.Amounts(batch_messages=5_000, batch=1_000, single_messages=500, paced_messages=20)
    with NodeProcess(tmp_path / "data") as node:
        growing.create_topics(node, 3)
        growing.store(node, 20_000)
        with growing.connected(node, 20):
            cost = growth.cost(node, amounts, topic=growing.BIG_TOPIC)
    assert cost.keys() == growth.COSTS.keys()
    assert all(value > 0 for value in cost.values())


def test_a_grown_node_and_an_empty_one_take_turns(tmp_path, monkeypatch):
    turns: list[tuple[str, str | None]] = []

    def cost(node: NodeProcess, amounts: growth.Amounts, *, topic: str | None) -> growth.Cost:
        turns.append((node.url, topic))
        return dict.fromkeys(growth.COSTS, float(len(turns)))

    monkeypatch.setattr(growth, "cost", cost)
    monkeypatch.setattr(growing, "REST_SECONDS", 0.0)
    said: list[str] = []
    new, big = growth.measure(tmp_path, messages=20_000, topics=0, connections=0, rounds=2, on_progress=said.append)
    (empty, _), (grown, _) = turns[:2]
    assert empty != grown
    there = [(empty, None), (grown, None), (empty, None), (grown, growing.BIG_TOPIC)]
    assert turns == [*there, *reversed(there)]
    assert (new.where, big.where) == ("a new topic", "the big topic")
    assert [each["batches"] for each in (*new.empty, *new.grown)] == [1, 8, 2, 7]
    assert [each["batches"] for each in (*big.empty, *big.grown)] == [3, 6, 4, 5]
    assert said[-1] == "20,000 messages stored: round 2 of 2"
    assert not list(tmp_path.iterdir()), "what was stored is gone"


def test_what_does_not_fit_the_disk_is_refused_before_it_begins(tmp_path):
    with pytest.raises(growing.NoRoom, match="are free"):
        growing.store(NodeProcess(tmp_path / "data"), 10**12)
