"""A topic as server-sent events: live, from any position, and to the end of whoever may read it."""

from __future__ import annotations

import asyncio
import json
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.doors.http import event_stream
from sealane.doors.http.settings import HttpDoorSettings
from sealane.node import NodeSettings
from sealane.node.settings import TopicSettings
from sealane.security.grants.grants import Grant
from sealane.security.settings import QuotaSettings, SecuritySettings
from tests.http_node import HttpNode, http_node
from tests.integration.http.event_client import DEADLINE_SECONDS, EventSource, open_events
from tests.integration.http.test_websocket_bounds import until


async def ended(source: EventSource) -> Any:
    """What the node says as it ends the stream."""
    bye = await source.next()
    assert bye is not None
    assert bye.name == "bye", bye
    assert await source.next() is None
    return bye.data


async def test_messages_come_as_they_are_published(node: HttpNode) -> None:
    await node.publish("t", "before")
    async with open_events(node.http, "t") as source:
        [receipt] = (await node.publish("t", "hello", key="k", headers={"region": "eu"}))["receipts"]  # type: ignore[call-overload]
        event = await source.next()
    assert event is not None
    expected = {"id": receipt["id"], "payload": "hello", "key": "k", "headers": {"region": "eu"}, "offset": 1}
    assert event.data | expected == event.data
    assert event.id.startswith("0:2@")
    assert source.retry == event_stream.RETRY_MILLISECONDS


async def test_reading_begins_where_it_is_asked_to(node: HttpNode) -> None:
    await node.publish("t", "a")
    between = datetime.now(UTC)
    await node.publish("t", "b")
    async with open_events(node.http, "t", start="earliest") as source:
        assert await source.payloads(2) == ["a", "b"]
    async with open_events(node.http, "t", start="0:1") as source:
        assert await source.payloads(1) == ["b"]
    async with open_events(node.http, "t", start=between.isoformat()) as source:
        assert await source.payloads(1) == ["b"]
    async with open_events(node.http, "t", start=f"{between:%Y-%m-%dT%H:%M:%S.%f}Z") as source:
        assert await source.payloads(1) == ["b"]


async def test_a_reader_goes_on_exactly_where_it_was(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t", json={"partitions": 3})
    for number in range(30):
        await node.publish("t", str(number), key=str(number))
    seen: list[str] = []
    last_id: str | None = None
    while len(seen) < 30:
        async with open_events(node.http, "t", last_id=last_id, start="earliest") as source:
            seen += await source.payloads(min(4, 30 - len(seen)))
            last_id = source.last_id
    assert sorted(seen, key=int) == [str(number) for number in range(30)]


async def test_a_reader_that_has_seen_nothing_yet_misses_nothing_either(node: HttpNode) -> None:
    await node.publish("t", "before")
    async with open_events(node.http, "t") as source, asyncio.timeout(DEADLINE_SECONDS):
        first = asyncio.create_task(source.next())
        await until(lambda: bool(source.last_id))
        first.cancel()
    await node.publish("t", "meanwhile")
    async with open_events(node.http, "t", last_id=source.last_id) as again:
        assert await again.payloads(1) == ["meanwhile"]


async def test_a_reader_goes_on_after_the_node_was_started_again(tmp_path: Path) -> None:
    async with http_node(tmp_path / "data") as node:
        await node.publish("t", "a", "b")
        async with open_events(node.http, "t", start="earliest") as source:
            await source.payloads(1)
    async with http_node(tmp_path / "data") as node:
        await node.publish("t", "c")
        async with open_events(node.http, "t", last_id=source.last_id) as source:
            assert await source.payloads(2) == ["b", "c"]


async def test_what_retention_has_removed_is_told_as_lost(node: HttpNode) -> None:
    await node.publish("t", "a", "b", "c")
    async with open_events(node.http, "t", start="earliest") as source:
        await source.payloads(1)
    [owner] = node.node.topic("t").owners
    await owner.engine.trim(owner.key, messages_before=3)
    owner.core.trimmed(3)
    await node.publish("t", "d")
    async with open_events(node.http, "t", last_id=source.last_id) as source:
        lost = await source.next()
        assert lost is not None
        assert (lost.name, lost.data["partition"], lost.data["first"], lost.data["last"]) == ("lost", 0, 1, 2)
        assert lost.id.startswith("0:3@")
        assert await source.payloads(1) == ["d"]


async def test_a_topic_that_was_made_again_is_told_as_lost(node: HttpNode) -> None:
    await node.publish("t", "a", "b")
    async with open_events(node.http, "t", start="earliest") as source:
        await source.payloads(2)
    await node.well("DELETE", "/topics/t")
    await node.publish("t", "c")
    async with open_events(node.http, "t", last_id=source.last_id) as source:
        lost = await source.next()
        assert lost is not None
        assert (lost.name, lost.data["partition"]) == ("lost", None)
        assert await source.payloads(1) == ["c"]


async def test_a_filter_chooses_what_comes(node: HttpNode) -> None:
    for region in ("eu", "us", "eu"):
        await node.publish("t", region, headers={"region": region})
    async with open_events(node.http, "t", start="earliest", filter="headers['region'] = 'eu'") as source:
        assert await source.payloads(2) == ["eu", "eu"]


async def test_what_is_delayed_comes_when_it_is_due(node: HttpNode) -> None:
    await node.publish("t", "late", delay=0.2)
    await node.publish("t", "now")
    async with open_events(node.http, "t", start="earliest") as source:
        assert await source.payloads(2) == ["now", "late"]


async def test_a_stream_without_messages_has_heartbeats(node: HttpNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_stream, "HEARTBEAT_SECONDS", 0.01)
    async with open_events(node.http, "t", filter="key = 'nobody'") as source:
        reading = asyncio.create_task(source.next())
        await until(lambda: source.comments >= 3)
        before = source.last_id
        await node.publish("t", "not for it")
        # It was passed over: who comes back need not look at it again.
        await until(lambda: source.last_id != before)
        assert source.last_id.startswith("0:1@")
        reading.cancel()


async def test_any_number_of_messages_is_read_at_the_pace_of_the_client(node: HttpNode) -> None:
    async with sealane.connect(node.url) as lane:
        for _ in range(10):
            await lane.publish_many("t", [b"x" * 2_000] * 1_000)
    host, _, port = node.door.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port), limit=16 << 10)
    try:
        path = "/api/v1/domains/default/topics/t/events?start=earliest"
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        [connection] = node.door._server.server_state.connections
        await until(lambda: connection.flow.write_paused)  # type: ignore[union-attr]
        [told] = node.node.topic("t").owners[0].told_of_commits
        follower = told.func.__self__  # type: ignore[attr-defined]
        # What is read and not sent is a piece, and what the machine's own buffers hold.
        assert int(follower.position().partition(":")[2].partition("@")[0]) < 9_000
        assert connection.transport.get_write_buffer_size() < 4 << 20
        seen = 0
        async with asyncio.timeout(DEADLINE_SECONDS):
            while seen < 10_000:
                seen += (await reader.readuntil(b"\n")).count(b"event: message")
    finally:
        writer.transport.abort()


async def test_a_client_that_does_not_read_for_too_long_is_cut_off() -> None:
    async with http_node(door=HttpDoorSettings(port=0, send_seconds_max=0.2)) as node:
        async with sealane.connect(node.url) as lane:
            await lane.publish_many("t", [b"x" * 100_000] * 80)
        host, _, port = node.door.address.rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port), limit=16 << 10)
        path = "/api/v1/domains/default/topics/t/events?start=earliest"
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        owner = node.node.topic("t").owners[0]
        await until(lambda: bool(owner.told_of_commits))
        await until(lambda: not owner.told_of_commits)
        assert len(node.node.entrances) == 0
        writer.transport.abort()


async def test_a_client_that_leaves_is_forgotten(node: HttpNode) -> None:
    async with open_events(node.http, "t"):
        owner = node.node.topic("t").owners[0]
        assert len(owner.told_of_commits) == 1
        assert len(node.node.entrances) == 1
    await until(lambda: not owner.told_of_commits)
    await until(lambda: len(node.node.entrances) == 0)


async def test_a_node_that_stops_says_so_and_soon(node: HttpNode) -> None:
    async with open_events(node.http, "t") as source:
        draining = asyncio.create_task(node.door.drain(DEADLINE_SECONDS))
        began = time.monotonic()
        bye = await ended(source)
        await draining
        assert time.monotonic() - began < DEADLINE_SECONDS / 2
    assert (bye["status"], bye["type"]) == (503, "urn:sealane:unavailable")
    assert source.retry == event_stream.RETRY_MILLISECONDS


async def test_a_client_that_does_not_take_the_last_words_is_cut_off(
    node: HttpNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_stream, "LAST_WORDS_SECONDS_MAX", 0.05)
    async with sealane.connect(node.url) as lane:
        await lane.publish_many("t", [b"x" * 100_000] * 80)
    host, _, port = node.door.address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), limit=16 << 10)
    path = "/api/v1/domains/default/topics/t/events?start=earliest"
    writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    await until(lambda: any(connection.flow.write_paused for connection in node.door._server.server_state.connections))  # type: ignore[union-attr]
    async with asyncio.timeout(DEADLINE_SECONDS):
        await node.door.drain(2 * DEADLINE_SECONDS)
    assert node.door.connections == 0
    writer.transport.abort()


async def test_a_credential_that_is_over_ends_the_stream() -> None:
    async with http_node(authenticate=None) as node:
        _, key = await node.node.identity.api_keys.create("anna")
        node.http.headers["Authorization"] = f"Bearer {key}"
        async with open_events(node.http, "t") as source:
            await node.node.identity.accounts.change("anna", disabled=True)
            assert (await ended(source))["status"] == 401
        assert (await node.http.get("/topics/t/events")).status_code == 401
        assert node.node.entrances.connections_of("anna") == 0


async def test_a_grant_that_is_taken_away_ends_the_stream() -> None:
    grant = Grant("anna", "consume", "default/t")
    async with http_node(authenticate=None) as node:
        await node.node.identity.grants.add(grant)
        _, key = await node.node.identity.api_keys.create("anna", roles=())
        node.http.headers["Authorization"] = f"Bearer {key}"
        async with open_events(node.http, "t") as source:
            await node.node.identity.grants.remove(grant)
            assert (await ended(source))["status"] == 403
        assert (await node.http.get("/topics/t/events")).status_code == 403


async def test_a_topic_that_is_deleted_ends_the_stream(node: HttpNode) -> None:
    async with open_events(node.http, "t") as source:
        await node.well("DELETE", "/topics/t")
        assert (await ended(source))["status"] == 404


async def test_streams_count_as_connections_of_their_principal() -> None:
    quotas = QuotaSettings(connections_per_principal_max=1)
    settings = NodeSettings(security=SecuritySettings(quotas=quotas))
    async with http_node(authenticate=None, settings=settings) as node:
        _, key = await node.node.identity.api_keys.create("anna")
        node.http.headers["Authorization"] = f"Bearer {key}"
        async with open_events(node.http, "t"):
            refused = await node.http.get("/topics/t/events")
            assert (refused.status_code, refused.json()["type"]) == (429, "urn:sealane:too-many-connections")
            assert len(node.node.topic("t").owners[0].told_of_commits) == 1


@pytest.mark.parametrize(
    ("query", "headers"),
    [
        ({"start": "tomorrow"}, {}),
        ({"start": "2026-01-31T12:00:00"}, {}),
        ({"start": "2026-13-31T12:00:00Z"}, {}),
        ({"start": "0:1,0:2"}, {}),
        ({"filter": "key ="}, {}),
        ({}, {"Last-Event-ID": "garbage"}),
    ],
)
async def test_what_cannot_be_followed_is_refused_with_a_problem(
    node: HttpNode, query: dict[str, str], headers: dict[str, str]
) -> None:
    refused = await node.http.get("/topics/t/events", params=query, headers=headers)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"


async def test_a_topic_that_does_not_exist_is_made_unless_that_is_off() -> None:
    async with http_node(settings=NodeSettings(topics=TopicSettings(auto_create=False))) as node:
        refused = await node.http.get("/topics/t/events")
    assert refused.status_code == 404


async def test_the_stream_is_what_curl_shows(node: HttpNode) -> None:
    await node.publish("t", "one\ntwo")
    async with node.http.stream("GET", "/topics/t/events?start=earliest") as response:
        text = ""
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for piece in response.aiter_text():
                text += piece
                if text.count("\n\n") == 2:
                    break
    first, second, _ = text.split("\n\n")
    assert first.startswith("retry: 2000\nid: 0:0@")
    assert second.split("\n")[1] == "event: message"
    assert json.loads(second.split("\n")[2].removeprefix("data: "))["payload"] == "one\ntwo"
