"""Following a topic: every message once and in order, from any position that was given out."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import pytest

from sealane.errors import FilterError, Forbidden, InvalidArgument, TopicNotFound
from sealane.message import BatchMeta, Limits, from_payloads
from sealane.node.following.follower import Follower
from sealane.node.following.position import DELAYED_RUNS_MAX, FOLLOWED_PARTITIONS_MAX, Place, Position
from sealane.node.session import Session
from sealane.node.starts import Start
from sealane.security.grants.grants import Grant
from sealane.security.principals import ADMIN, Principal
from tests.unit.node.running_node import DEADLINE_SECONDS, Running, running_node

Seen = tuple[str, str]
"""A payload, and the position after it."""


@asynccontextmanager
async def following(
    running: Running, start: Start | Position = "earliest", filter: str | None = None
) -> AsyncIterator[Follower]:
    follower = await Session(running.node, ADMIN).follow("t", start, filter)
    try:
        yield follower
    finally:
        follower.close()


async def read_all(follower: Follower) -> list[Seen]:
    """What there is now."""
    seen: list[Seen] = []
    while (followed := await follower.read()) is not None:
        if followed.lost is not None:
            seen.append((f"lost {followed.lost}", followed.positions[0]))
        elif followed.part is not None:
            payloads = [payload.decode() for payload in followed.part.batch.payloads()]
            seen += zip(payloads, followed.positions, strict=True)
    return seen


async def payloads_of(running: Running, start: Start | Position = "earliest", filter: str | None = None) -> list[str]:
    async with following(running, start, filter) as follower:
        return [payload for payload, _ in await read_all(follower)]


async def publish(running: Running, *payloads: str, **options: object) -> None:
    for payload in payloads:
        await running.lane.publish("t", payload.encode(), **options)  # type: ignore[arg-type]


def bare(position: str) -> str:
    """A position without the number of its topic."""
    return position.partition("@")[0]


async def test_messages_come_in_the_order_of_the_log_whatever_their_priority() -> None:
    async with running_node() as running:
        await publish(running, "a")
        await publish(running, "b", priority=9)
        await publish(running, "c", priority=1)
        async with following(running) as follower:
            seen = await read_all(follower)
    assert [(payload, bare(position)) for payload, position in seen] == [("a", "0:1"), ("b", "0:2"), ("c", "0:3")]


async def test_every_position_is_resumed_exactly_behind_its_message() -> None:
    async with running_node() as running:
        await running.lane.create_topic("t", partitions=3)
        for number in range(30):
            await running.lane.publish("t", f"{number}".encode(), key=f"{number}".encode())
        async with following(running) as follower:
            seen = await read_all(follower)
        assert len(seen) == 30
        for place, (_, position) in enumerate(seen):
            rest = await payloads_of(running, Position.read(position))
            assert sorted(rest) == sorted(payload for payload, _ in seen[place + 1 :])


async def test_large_batches_are_read_in_pieces() -> None:
    async with running_node() as running:
        await running.lane.publish_many("t", [f"{number}".encode() for number in range(1_234)])
        assert await payloads_of(running) == [f"{number}" for number in range(1_234)]
        async with following(running) as follower:
            first = await follower.read()
    assert first is not None
    assert len(first.positions) < 1_234


async def test_a_reader_is_woken_by_what_is_published() -> None:
    async with running_node() as running:
        await publish(running, "before")
        async with following(running, "latest") as follower:
            assert await follower.read() is None
            waiting = asyncio.create_task(follower.wait(DEADLINE_SECONDS))
            await publish(running, "after")
            async with asyncio.timeout(DEADLINE_SECONDS / 2):
                await waiting
            assert [payload for payload, _ in await read_all(follower)] == ["after"]


async def test_a_reader_that_is_closed_is_told_nothing_any_more() -> None:
    async with running_node() as running:
        await publish(running, "a")
        async with following(running):
            owner = running.node.topic("t").owners[0]
            assert len(owner.told_of_commits) == 1
        assert not owner.told_of_commits


async def test_reading_begins_at_a_moment_or_at_offsets() -> None:
    async with running_node() as running:
        await publish(running, "a")
        running.clock.pass_seconds(10)
        moment = datetime.fromtimestamp(running.clock.now_us / 1e6, UTC)
        await publish(running, "b", "c")
        assert await payloads_of(running, moment) == ["b", "c"]
        assert await payloads_of(running, {0: 2}) == ["c"]
        assert await payloads_of(running, Position({0: Place(1)})) == ["b", "c"]


async def test_a_filter_passes_over_what_does_not_match() -> None:
    async with running_node() as running:
        await publish(running, "a", headers={"region": "eu"})
        await publish(running, "b", headers={"region": "us"})
        await publish(running, "c", headers={"region": "eu"})
        assert await payloads_of(running, filter="headers['region'] = 'eu'") == ["a", "c"]
        async with following(running, filter="headers['region'] = 'nowhere'") as follower:
            assert await read_all(follower) == []
            assert bare(follower.position()) == "0:3"
        with pytest.raises(FilterError):
            await payloads_of(running, filter="headers[")


async def test_what_has_expired_is_passed_over() -> None:
    async with running_node() as running:
        await publish(running, "short", ttl=5)
        await publish(running, "long", ttl=50)
        running.clock.pass_seconds(10)
        assert await payloads_of(running) == ["long"]


async def test_what_is_delayed_comes_when_it_is_due_and_is_named_until_then() -> None:
    async with running_node() as running:
        await publish(running, "a")
        await publish(running, "late", "later", delay=60)
        await publish(running, "b")
        async with following(running) as follower:
            seen = await read_all(follower)
            assert [(payload, bare(position)) for payload, position in seen] == [("a", "0:1"), ("b", "0:4-1..2")]
            running.clock.pass_seconds(61)
            due = await read_all(follower)
        assert [(payload, bare(position)) for payload, position in due] == [("late", "0:4-2"), ("later", "0:4")]
        assert await payloads_of(running, Position.read(seen[-1][1])) == ["late", "later"]
        assert await payloads_of(running, Position.read(due[0][1])) == ["later"]


async def test_what_is_still_delayed_after_a_resumption_waits_on() -> None:
    async with running_node() as running:
        await publish(running, "late", delay=60)
        await publish(running, "a")
        async with following(running) as follower:
            [(_, position)] = await read_all(follower)
        async with following(running, Position.read(position)) as follower:
            assert await read_all(follower) == []
            assert follower.position() == position
            running.clock.pass_seconds(61)
            assert [payload for payload, _ in await read_all(follower)] == ["late"]


async def test_only_so_many_delayed_runs_are_passed_over() -> None:
    async with running_node() as running:
        for number in range(DELAYED_RUNS_MAX + 1):
            await publish(running, f"late {number}", delay=60)
            await publish(running, f"now {number}")
        async with following(running) as follower:
            seen = await read_all(follower)
            assert [payload for payload, _ in seen] == [f"now {number}" for number in range(DELAYED_RUNS_MAX)]
            assert bare(follower.position()).count("-") == DELAYED_RUNS_MAX
            running.clock.pass_seconds(61)
            rest = [payload for payload, _ in await read_all(follower)]
    assert sorted(rest) == sorted(
        [*(f"late {number}" for number in range(DELAYED_RUNS_MAX + 1)), f"now {DELAYED_RUNS_MAX}"]
    )


async def test_many_delayed_messages_in_one_batch_stop_a_reader_where_there_is_no_more_room() -> None:
    async with running_node() as running:
        async with running.lane.producer("t") as producer:
            for number in range(4 * DELAYED_RUNS_MAX):
                await producer.send(f"{number}".encode(), delay=60 if number % 2 else 0)
        async with following(running) as follower:
            now = [int(payload) for payload, _ in await read_all(follower)]
            assert now == list(range(0, 2 * DELAYED_RUNS_MAX + 1, 2))
            running.clock.pass_seconds(61)
            rest = [int(payload) for payload, _ in await read_all(follower)]
    assert sorted([*now, *rest]) == list(range(4 * DELAYED_RUNS_MAX))


async def test_room_that_one_partition_makes_is_used_by_another() -> None:
    async with running_node() as running:
        await running.lane.create_topic("t", partitions=2)
        of_partition: dict[int, bytes] = {}
        while len(of_partition) < 2:
            key = str(len(of_partition) + running.clock.now_us).encode()
            running.clock.pass_seconds(1)
            of_partition.setdefault((await running.lane.publish("t", b"key", key=key)).partition, key)
        begun = {owner.key.partition: owner.core.end for owner in running.node.topic("t").owners}
        for number in range(2 * DELAYED_RUNS_MAX):
            await publish(running, f"soon {number}", key=of_partition[1])
        await publish(running, "late", key=of_partition[0], delay=60)
        await publish(running, "now", key=of_partition[0])
        first = begun[1]
        later = tuple((first + 2 * number, first + 2 * number + 1) for number in range(DELAYED_RUNS_MAX))
        places = {0: Place(begun[0]), 1: Place(first + 2 * DELAYED_RUNS_MAX, later)}
        async with following(running, Position(places)) as follower:
            seen = [payload for payload, _ in await read_all(follower)]
    assert sorted(seen) == sorted(["now", *(f"soon {number}" for number in range(0, 2 * DELAYED_RUNS_MAX, 2))])


async def test_many_delayed_messages_in_a_row_are_one_run_of_a_position() -> None:
    async with running_node() as running:
        await publish(running, "a")
        batch = from_payloads(
            [b"late"] * 50_000,
            running.node.surroundings.stamp(),
            limits=Limits(),
            deliver_at_us=running.clock() + 60_000_000,
        )
        for _ in range(2):
            await running.node.publish("t", batch)
            await publish(running, *["now"] * 10)
        async with following(running) as follower:
            seen = await read_all(follower)
    assert len(seen) == 21
    assert bare(seen[-1][1]) == "0:100021-1..50000-50011..100010"


async def test_what_retention_has_removed_is_told_as_lost() -> None:
    async with running_node() as running:
        await running.lane.create_topic("t", retention_seconds=5)
        await publish(running, "a", "b")
        running.clock.pass_seconds(10)
        await publish(running, "c")
        await running.node._retention.apply()
        async with following(running, Position({0: Place(1)})) as follower:
            seen = await read_all(follower)
    assert [(text, bare(position)) for text, position in seen] == [("lost (1, 2)", "0:2"), ("c", "0:3")]


async def test_delayed_messages_that_retention_has_removed_are_told_as_lost_too() -> None:
    async with running_node() as running:
        await running.lane.create_topic("t", retention_seconds=5)
        await publish(running, "late", delay=3)
        await publish(running, "a")
        running.clock.pass_seconds(10)
        await publish(running, "b")
        await running.node._retention.apply()
        async with following(running, Position({0: Place(2, ((0, 1),))})) as follower:
            assert [text for text, _ in await read_all(follower)] == ["lost (0, 1)", "b"]


async def test_a_position_of_an_earlier_topic_is_no_position_in_this_one() -> None:
    async with running_node() as running:
        await publish(running, "a", "b")
        async with following(running) as follower:
            position = Position.read((await read_all(follower))[-1][1])
        await running.lane.delete_topic("t")
        await publish(running, "c")
        async with following(running, position) as follower:
            assert follower.is_of_earlier_topic
            assert [payload for payload, _ in await read_all(follower)] == ["c"]


async def test_a_position_beyond_the_end_goes_on_at_the_end() -> None:
    async with running_node() as running:
        await publish(running, "a")
        async with following(running, Position.read("0:100-5..90")) as follower:
            await read_all(follower)
            await publish(running, "b")
            assert [payload for payload, _ in await read_all(follower)] == ["b"]


async def test_partitions_that_are_added_are_read_from_their_start() -> None:
    async with running_node() as running:
        await publish(running, "a")
        async with following(running, "latest") as follower:
            await running.lane.configure_topic("t", partitions=2)
            for number in range(10):
                await running.lane.publish("t", b"x", key=f"{number}".encode())
            assert len(await read_all(follower)) == 10
            assert follower.position().count(":") == 2


async def test_a_topic_with_too_many_partitions_cannot_be_followed() -> None:
    async with running_node() as running:
        await running.lane.create_topic("t", partitions=FOLLOWED_PARTITIONS_MAX + 1)
        with pytest.raises(InvalidArgument, match="partitions"):
            await payloads_of(running)
        assert not any(owner.told_of_commits for owner in running.node.topic("t").owners)


async def test_what_was_driven_back_to_one_subscription_is_not_for_readers() -> None:
    async with running_node() as running:
        batch = from_payloads([b"back"], running.node.surroundings.stamp(), limits=Limits())
        await publish(running, "a")
        await running.node.publish("t", batch.with_meta(BatchMeta(only="someone")))
        await publish(running, "b")
        assert await payloads_of(running) == ["a", "b"]


async def test_a_topic_that_is_deleted_ends_the_reading() -> None:
    async with running_node() as running:
        await publish(running, "a")
        async with following(running) as follower:
            await running.lane.delete_topic("t")
            with pytest.raises(TopicNotFound):
                await follower.read()


async def test_a_grant_that_is_taken_away_ends_the_reading() -> None:
    async with running_node() as running:
        await publish(running, "a")
        grant = Grant("reader", "consume", "default/t")
        await running.node.identity.grants.add(grant)
        follower = await Session(running.node, Principal("reader", kind="local")).follow("t", "earliest")
        assert await follower.read() is not None
        await running.node.identity.grants.remove(grant)
        with pytest.raises(Forbidden):
            await follower.read()
        follower.close()


@pytest.mark.parametrize(
    "text",
    ["0:42", "0:42,1:17", "0:42-38-40..41", "0:42,1:17-0@5f2c", "511:999999999999999999"],
)
def test_positions_are_read_as_they_were_written(text: str) -> None:
    assert Position.read(text).text() == text


@pytest.mark.parametrize(
    "text",
    [
        "", "0", "0:", ":1", "a:1", "0:1,", "0:1,0:2", "0:-1", "0:5-5", "0:5-3..2", "0:5-3-2", "0:5-2-3", "0:1@",
        "0:1@xyz", "0:9999999999999999999", "0:1 1:2", "\u0660:1", "0:1-",
        "0:200" + "".join(f"-{n}" for n in range(0, 140, 2)),
        "0:1," * 4_000,
    ],
)  # fmt: skip
def test_what_is_no_position_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        Position.read(text)
