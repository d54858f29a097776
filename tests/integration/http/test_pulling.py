"""Long polling and the leases that it gives out."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

import sealane
from tests.http_node import HttpNode, http_node
from tests.scenarios.broker import described, eventually

FIXED = {"retry": {"kind": "fixed", "delay_seconds": 0, "attempts_max": 2}}


def payloads(pulled: dict) -> list[str]:
    return [message["payload"] for message in pulled["messages"]]


async def test_who_pulls_gets_what_is_there_up_to_what_they_asked_for(node: HttpNode) -> None:
    await node.publish("t", "a", "b", "c")
    pulled = await node.pull("t", max=2)
    assert payloads(pulled) == ["a", "b"]
    assert pulled["lease"]
    assert payloads(await node.pull("t")) == ["c"]


async def test_where_nothing_is_the_answer_is_empty_and_has_no_lease(node: HttpNode) -> None:
    assert await node.pull("t", wait=0) == {"lease": None, "deadline": None, "messages": []}


async def test_who_waits_gets_what_comes(node: HttpNode) -> None:
    waiting = asyncio.create_task(node.pull("t", wait=60))
    async with sealane.connect(node.url) as lane:
        await eventually(lambda: _has_consumer(lane))
        await lane.publish("t", b"hello")
    assert payloads(await waiting) == ["hello"]


async def _has_consumer(lane: sealane.Lane) -> bool:
    try:
        return (await described(lane, "t", "s")).consumers == 1
    except (sealane.SealaneError, StopIteration, RuntimeError):
        return False


async def test_whoever_hangs_up_while_waiting_takes_nothing_along(node: HttpNode) -> None:
    waiting = asyncio.create_task(node.pull("t", wait=60))
    async with sealane.connect(node.url) as lane:
        await eventually(lambda: _has_consumer(lane))
        waiting.cancel()
        await asyncio.wait([waiting])

        async def alone() -> bool:
            return (await described(lane, "t", "s")).consumers == 0

        await eventually(alone)
        await lane.publish("t", b"hello")
        assert (await described(lane, "t", "s")).leased == 0
    assert payloads(await node.pull("t")) == ["hello"]


async def test_whoever_waits_while_the_node_stops_is_sent_away(node: HttpNode) -> None:
    waiting = asyncio.create_task(node.http.get("/topics/t/subscriptions/s/messages?wait=60"))
    async with sealane.connect(node.url) as lane:
        await eventually(lambda: _has_consumer(lane))
    await node.door.drain(30)
    answer = await waiting
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"


async def test_what_is_acknowledged_never_comes_again_also_after_a_restart(tmp_path: Path) -> None:
    async with http_node(tmp_path) as node:
        await node.publish("t", "a", "b", "c")
        pulled = await node.pull("t")
        ids = [message["id"] for message in pulled["messages"]]
        assert (await node.settle("t", pulled["lease"], "ack", ids=ids[:1])).status_code == 204
    async with http_node(tmp_path) as node:
        # The lease is as good as before.
        assert (await node.settle("t", pulled["lease"], "ack", ids=ids[1:2])).status_code == 204
        assert (await node.settle("t", pulled["lease"], "nack", delay=0)).status_code == 204
        assert payloads(await node.pull("t")) == ["c"]


async def test_answering_twice_is_no_error(node: HttpNode) -> None:
    await node.publish("t", "a")
    pulled = await node.pull("t")
    for _ in range(2):
        assert (await node.settle("t", pulled["lease"], "ack")).status_code == 204


async def test_what_is_given_back_comes_again_and_then_dies(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t/subscriptions/s", json=FIXED)
    await node.publish("t", "a")
    for attempt in (1, 2):
        pulled = await node.pull("t")
        assert pulled["messages"][0]["attempt"] == attempt
        await node.settle("t", pulled["lease"], "nack", reason="no paper")

    async def buried() -> bool:
        return (await node.well("GET", "/topics/t/subscriptions/s/dead-letters"))["depth"] == 1

    await eventually(buried)
    dead = await node.well("GET", "/topics/t/subscriptions/s/dead-letters")
    assert dead["topic"] == "default/t.s.dead"
    assert payloads(dead) == ["a"]
    assert dead["messages"][0]["headers"]["sealane-dead-reason"] == "no paper"

    looked = await node.well("POST", "/topics/t/subscriptions/s/dead-letters/redrive", json={"dry_run": True})
    assert looked == {"dry_run": True, "messages": 1, "reasons": {"no paper": 1}}
    driven = await node.well("POST", "/topics/t/subscriptions/s/dead-letters/redrive")
    assert driven["messages"] == 1
    assert payloads(await node.pull("t")) == ["a"]


async def test_a_lease_can_be_kept_for_longer(node: HttpNode) -> None:
    await node.publish("t", "a")
    pulled = await node.pull("t")
    extended = await node.settle("t", pulled["lease"], "extend", seconds=3600)
    assert extended.status_code == 200
    assert extended.json()["deadline"] > pulled["deadline"]


async def test_a_lease_that_is_over_is_a_conflict(node: HttpNode) -> None:
    await node.publish("t", "a")
    pulled = await node.pull("t")
    await node.settle("t", pulled["lease"], "nack", delay=0)
    for how, said in (("ack", {}), ("extend", {"seconds": 5})):
        refused = await node.http.post(f"/topics/t/subscriptions/s/leases/{pulled['lease']}/{how}", json=said)
        assert refused.status_code == 409, refused.text
        assert refused.json()["type"] == "urn:sealane:lease-lost"


@pytest.mark.parametrize(
    ("lease", "said"),
    [("nonsense", {}), ("", {}), (None, {"ids": ["no uuid"]}), (None, {"ids": [str(uuid.uuid4())]})],
)
async def test_what_is_no_lease_or_no_id_is_refused(node: HttpNode, lease: str | None, said: dict) -> None:
    await node.publish("t", "a")
    held = (await node.pull("t"))["lease"]
    refused = await node.settle("t", held if lease is None else lease, "ack", **said)
    assert refused.status_code in (404, 422)


@pytest.mark.parametrize("query", ["max=0", "max=10001", "wait=-1", "wait=61", "max=many"])
async def test_what_cannot_be_asked_for_is_refused_by_name(node: HttpNode, query: str) -> None:
    refused = await node.http.get(f"/topics/t/subscriptions/s/messages?{query}")
    assert refused.status_code == 422
    assert f"query.{query.partition('=')[0]}" in refused.json()["detail"]


async def test_two_who_pull_share_the_messages(node: HttpNode) -> None:
    await node.publish("t", *map(str, range(100)))
    pulled = await asyncio.gather(*(node.pull("t", max=50) for _ in range(2)))
    assert sorted(int(each) for one in pulled for each in payloads(one)) == list(range(100))


async def test_a_broadcast_subscription_cannot_be_pulled(node: HttpNode) -> None:
    async with sealane.connect(node.url) as lane:
        await lane.publish("t", b"x")
        async for _ in lane.consume("t", "s", mode="broadcast"):
            refused = await node.http.get("/topics/t/subscriptions/s/messages")
            assert refused.status_code == 409
            break
