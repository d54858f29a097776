"""History: what has happened to messages can be read for as long as the messages are kept."""

from __future__ import annotations

from typing import Any

import pytest

import sealane
from sealane.node import NodeSettings
from tests.scenarios.broker import AT_ONCE, Broker, all_settled, eventually, take

OFTEN = NodeSettings(snapshot_journal_bytes=1)
"""A snapshot after each commit."""


async def told(lane: sealane.Lane, topic: str = "orders", *, bytes_max: int = 1 << 18) -> list[dict[str, Any]]:
    """All rows there are."""
    rows: list[dict[str, Any]] = []
    entry, further = 0, True
    while further:
        read = await lane.history(topic, 0, entry, bytes_max=bytes_max)
        rows += read.rows.to_pylist()
        further, entry = read.next_entry > entry, read.next_entry
    return rows


def of(rows: list[dict[str, Any]], *events: str) -> list[tuple[str, list[tuple[int, int]]]]:
    """What rows of these kinds say of which offsets."""
    return [
        (row["event"], [(run["first"], run["stop"]) for run in row["runs"] or ()])
        for row in rows
        if row["event"] in events
    ]


def acked(rows: list[dict[str, Any]]) -> set[int]:
    return {offset for _, runs in of(rows, "acked") for first, stop in runs for offset in range(first, stop)}


async def publish_twenty(lane: sealane.Lane) -> None:
    """Each in a commit of its own, with an id: those are in the journal, too."""
    for number in range(20):
        await lane.publish("orders", b"%d" % number, id=number.to_bytes(16, "big"))


async def consumed(lane: sealane.Lane, count: int) -> None:
    for message in await take(lane.consume("orders", "billing", retry=AT_ONCE), count):
        await message.ack(confirm=True)


async def test_grants_acks_and_failures_are_told_with_their_offsets(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a", b"b", b"c"])
    async for message in lane.consume("orders", "billing", retry=AT_ONCE):
        if message.payload == b"b" and message.attempt == 1:
            await message.nack(reason="no such customer")
        else:
            await message.ack(confirm=True)
        if message.attempt == 2:
            break
    await all_settled(lane, "orders", "billing")
    rows = await told(lane)
    assert of(rows, "subscribed") == [("subscribed", [(0, 0)])]
    assert of(rows, "granted")[0] == ("granted", [(0, 3)])
    assert of(rows, "failed") == [("failed", [(1, 2)])]
    assert acked(rows) == {0, 1, 2}
    (failed,) = [row for row in rows if row["event"] == "failed"]
    assert (failed["cause"], failed["reason"], failed["subscription"]) == ("nack", "no such customer", "billing")
    (subscribed,) = [row for row in rows if row["event"] == "subscribed"]
    assert subscribed["mode"] == "queue"
    grants = {row["lease"]: row["consumer"] for row in rows if row["event"] == "granted"}
    assert all(row["lease"] in grants for row in rows if row["event"] in ("acked", "failed"))


async def test_reading_in_small_steps_tells_the_same(lane: sealane.Lane) -> None:
    for number in range(10):
        await lane.publish("orders", b"%d" % number)
    await consumed(lane, 10)
    rows = await told(lane)
    assert rows
    assert await told(lane, bytes_max=1) == rows


async def test_logs_say_where_the_journal_begins_and_ends(lane: sealane.Lane) -> None:
    await lane.publish_many("orders", [b"a"])
    await consumed(lane, 1)
    ((log,),) = [each.partitions for each in await lane.logs("orders")]
    assert log.journal_start == 0
    assert log.journal_end > 0
    read = await lane.history("orders", 0, 0, stop=1)
    assert read.next_entry == 1
    assert {row["entry"] for row in read.rows.to_pylist()} <= {0}
    assert (await lane.history("orders", 0, 1_000_000)).next_entry == 1_000_000


async def test_snapshots_keep_the_history_before_them(broker: Broker) -> None:
    lane = await broker.restart(OFTEN)
    await publish_twenty(lane)
    await consumed(lane, 20)
    rows = await told(lane)
    assert rows[0]["event"] == "subscribed"
    assert acked(rows) == set(range(20))
    assert of(rows, "standing")


async def test_history_outlives_a_restart_and_a_fold_begins_at_the_last_snapshot(directory: Broker) -> None:
    lane = await directory.restart(OFTEN)
    await publish_twenty(lane)
    await consumed(lane, 15)
    before = await told(lane)
    lane = await directory.restart()
    after = await told(lane)
    assert after[: len(before)] == before
    await consumed(lane, 5)
    await all_settled(lane, "orders", "billing")


async def test_history_is_forgotten_with_the_messages(broker: Broker) -> None:
    settings = NodeSettings(snapshot_journal_bytes=1, retention_check_seconds=0.05)
    lane = await broker.restart(settings)
    await publish_twenty(lane)
    await consumed(lane, 20)
    # Not before: on a busy machine the messages would be gone before they are consumed.
    await lane.configure_topic("orders", retention_seconds=0.1)

    async def forgotten() -> bool:
        ((log,),) = [each.partitions for each in await lane.logs("orders")]
        return log.journal_start > 10

    await eventually(forgotten)
    assert all(row["entry"] > 10 for row in await told(lane))


async def test_what_is_not_there_is_refused(lane: sealane.Lane) -> None:
    await lane.publish("orders", b"a")
    with pytest.raises(sealane.errors.InvalidArgument, match="entry"):
        await lane.history("orders", 0, -1)
    with pytest.raises(sealane.errors.InvalidArgument, match="partition"):
        await lane.history("orders", 1, 0)
    with pytest.raises(sealane.errors.TopicNotFound, match="made again"):
        await lane.history("orders", 0, 0, incarnation=12345)
