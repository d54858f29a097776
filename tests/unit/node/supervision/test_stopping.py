"""What cannot go on after a crash stops the node, and clients hear no more of it than they need."""

from __future__ import annotations

import logging

import pytest

from sealane.client.lane import Lane
from sealane.delivery.partition import Partition
from sealane.errors import StorageFailed
from sealane.node import Node
from sealane.node.owner import PartitionOwner
from sealane.node.status import health
from tests.unit.node.running_node import until
from tests.unit.node.supervision.planted import Planted, crash_always, crash_once, crash_was_logged, expect_stopped


async def test_a_reload_that_crashes_stops_the_node(node: Node, lane: Lane, monkeypatch, caplog) -> None:
    await lane.publish("orders", b"first")
    crash_always(monkeypatch, PartitionOwner, "take_unsure")
    node.topic("orders").owners[0].distrust("timer", Planted())

    await expect_stopped(node, lane, "reload")

    assert crash_was_logged(caplog, "reload")
    assert any(record.levelno == logging.CRITICAL for record in caplog.records)


async def test_a_commit_that_is_taken_and_not_applied_stops_the_node(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    crash_once(monkeypatch, Partition, "apply")

    with pytest.raises(Planted):
        await lane.publish("orders", b"second")

    await expect_stopped(node, lane, "commit")


async def test_a_commit_whose_end_is_not_heard_stops_the_node(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    crash_once(monkeypatch, Partition, "committed")
    await lane.publish("orders", b"second")

    await expect_stopped(node, lane, "commit")


async def test_what_a_crash_says_is_for_the_log_and_not_for_clients(node: Node, lane: Lane, monkeypatch) -> None:
    await lane.publish("orders", b"first")
    owner = node.topic("orders").owners[0]
    owner.distrust("timer", Planted("secret words"))
    with pytest.raises(StorageFailed) as unsure:
        await lane.publish("orders", b"second")
    await until(lambda: not health(node).problems)
    crash_once(monkeypatch, Partition, "apply")
    with pytest.raises(Planted):
        await lane.publish("orders", b"third")
    with pytest.raises(StorageFailed) as stopped:
        await lane.publish("orders", b"fourth")

    assert "Planted" in str(unsure.value)
    assert "secret words" not in str(unsure.value)
    assert "the node stops" in str(stopped.value)
    assert "apply" not in str(stopped.value)
