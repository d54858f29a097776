"""Publishing by HTTP: as JSON, as raw bytes, as Arrow; once under a key; refused with a reason."""

from __future__ import annotations

import base64
import gzip
import uuid
import zlib
from typing import Any

import pyarrow as pa
import pytest

import sealane
from sealane.doors.http.settings import HttpDoorSettings
from sealane.node import NodeSettings
from sealane.node.settings import TopicSettings
from sealane.security.settings import SecuritySettings
from tests.http_node import ARROW, HttpNode, http_node


def stream(**columns: Any) -> bytes:
    batch = pa.record_batch(columns)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return bytes(sink.getvalue())


async def test_a_message_is_answered_with_where_it_is(node: HttpNode) -> None:
    given = str(uuid.uuid4())
    answer = await node.http.post("/topics/t/messages", json={"payload": "hello", "id": given})
    assert answer.status_code == 201
    assert answer.json() == {"receipts": [{"id": given, "partition": 0, "offset": 0}]}


async def test_everything_that_a_message_has_comes_back(node: HttpNode) -> None:
    said = {"payload": "Grüße", "key": "42", "headers": {"region": "eu"}, "priority": 7, "ttl": 60}
    raw = {"payload_base64": base64.b64encode(b"\xff\x00").decode(), "key_base64": base64.b64encode(b"\xfe").decode()}
    await node.well("POST", "/topics/t/messages", json={"messages": [said, raw]})
    first, second = (await node.pull("t"))["messages"]
    assert first | {"payload": "Grüße", "key": "42", "headers": {"region": "eu"}, "priority": 7, "attempt": 1} == first
    assert (second["payload_base64"], second["key_base64"]) == (raw["payload_base64"], raw["key_base64"])
    assert "payload" not in second


async def test_a_raw_body_is_one_payload_and_the_rest_is_in_headers(node: HttpNode) -> None:
    headers = {
        "content-type": "application/octet-stream",
        "sealane-key": "k",
        "sealane-priority": "9",
        "sealane-header-region": "eu",
    }
    await node.well("POST", "/topics/t/messages", content=b"\x00\xff", headers=headers)
    [message] = (await node.pull("t"))["messages"]
    assert message["payload_base64"] == base64.b64encode(b"\x00\xff").decode()
    assert (message["key"], message["priority"], message["headers"]) == ("k", 9, {"region": "eu"})


async def test_arrow_goes_in_and_comes_out(node: HttpNode) -> None:
    body = stream(payload=[b"one", b"two"], key=pa.array([b"a", None], pa.binary()))
    answer = await node.http.post("/topics/t/messages", content=body, headers={"content-type": ARROW, "accept": ARROW})
    assert pa.ipc.open_stream(answer.content).read_all().column("offset").to_pylist() == [0, 1]
    pulled = await node.http.get("/topics/t/subscriptions/s/messages", headers={"accept": ARROW})
    table = pa.ipc.open_stream(pulled.content).read_all()
    assert table.column("payload").to_pylist() == [b"one", b"two"]
    assert table.column("key").to_pylist() == [b"a", None]
    assert table.column("offset").to_pylist() == [0, 1]
    assert table.column("attempt").to_pylist() == [1, 1]
    lease = table.schema.metadata[b"lease"].decode()
    assert (await node.settle("t", lease, "ack")).status_code == 204


async def test_a_long_stream_is_stored_in_its_order(node: HttpNode) -> None:
    payloads = [bytes(1_000) + str(number).encode() for number in range(12_000)]
    body = stream(payload=payloads)
    answer = await node.well("POST", "/topics/t/messages", content=body, headers={"content-type": ARROW})
    assert [receipt["offset"] for receipt in answer["receipts"]] == list(range(12_000))
    async with sealane.connect(node.url) as lane:
        seen = []
        async for batch in lane.consume_batches("t", "s"):
            seen += batch.payloads()
            await batch.ack()
            if len(seen) == len(payloads):
                break
    assert seen == payloads


async def test_a_request_sent_again_under_the_same_key_is_stored_once(node: HttpNode) -> None:
    said = {"headers": {"idempotency-key": "order-42"}, "json": {"messages": [{"payload": "a"}, {"payload": "b"}]}}
    first = await node.well("POST", "/topics/t/messages", **said)
    again = await node.well("POST", "/topics/t/messages", **said)
    other = await node.well("POST", "/topics/u/messages", **said)
    assert first == again
    assert first["receipts"][0]["id"] != other["receipts"][0]["id"]
    assert [message["payload"] for message in (await node.pull("t"))["messages"]] == ["a", "b"]


async def test_a_key_that_is_used_for_two_things_is_refused(node: HttpNode) -> None:
    headers = {"idempotency-key": "order-42"}
    await node.well("POST", "/topics/t/messages", headers=headers, json={"payload": "a"})
    refused = await node.http.post("/topics/t/messages", headers=headers, json={"payload": "b"})
    assert refused.status_code == 422
    assert "was used for another body" in refused.json()["detail"]


async def test_arrow_under_a_key_is_stored_once_too(node: HttpNode) -> None:
    said = {"headers": {"idempotency-key": "x", "content-type": ARROW}, "content": stream(payload=[b"a", b"b"])}
    first = await node.well("POST", "/topics/t/messages", **said)
    assert await node.well("POST", "/topics/t/messages", **said) == first
    assert len((await node.pull("t"))["messages"]) == 2


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"{", "body cannot be read"),
        (b"[]", "body"),
        (b"{}", "payload"),
        (b'{"payload": 3}', "payload"),
        (b'{"payload": "a", "payload_base64": "YQ=="}', "one of payload"),
        (b'{"payload_base64": "?"}', "payload_base64 is not base64"),
        (b'{"messages": [{"payload": "a"}, {"payload": "a", "priority": 11}]}', "messages[1].priority"),
        (b'{"messages": []}', "no messages"),
        (b'{"payload": "a", "colour": "red"}', "colour"),
    ],
)
async def test_what_is_wrong_with_a_body_is_said(node: HttpNode, body: bytes, problem: str) -> None:
    refused = await node.http.post("/topics/t/messages", content=body, headers={"content-type": "application/json"})
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert problem in refused.json()["detail"]
    assert refused.json()["request_id"] == refused.headers["x-request-id"]


async def test_a_kind_of_body_that_is_not_known_is_refused(node: HttpNode) -> None:
    # A page on the web may send text/plain to any address without asking.
    refused = await node.http.post("/topics/t/messages", content=b"{}", headers={"content-type": "text/plain"})
    assert refused.status_code == 415


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"no arrow at all",
        stream(payload=[b"x"]).replace(b"payload", b"pay\xffoad"),
        stream(payload=[b"a"])[:-20],
        stream(payload=[b"a"]) + b"more",
        stream(colour=["red"]),
        stream(payload=pa.array([b"a"]).dictionary_encode()),
    ],
)
async def test_arrow_that_is_none_is_refused(node: HttpNode, body: bytes) -> None:
    refused = await node.http.post("/topics/t/messages", content=body, headers={"content-type": ARROW})
    assert refused.status_code == 422, refused.text
    assert await node.well("GET", "/topics") == {"topics": []}


async def test_compressed_arrow_buffers_are_refused(node: HttpNode) -> None:
    batch = pa.record_batch({"payload": [bytes(100_000)]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_batch(batch)
    refused = await node.http.post(
        "/topics/t/messages", content=bytes(sink.getvalue()), headers={"content-type": ARROW}
    )
    assert refused.status_code == 422
    assert "compressed" in refused.json()["detail"]


@pytest.mark.parametrize(("encoding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
async def test_a_compressed_body_is_read(node: HttpNode, encoding: str, pack: Any) -> None:
    headers = {"content-type": "application/json", "content-encoding": encoding}
    await node.well("POST", "/topics/t/messages", content=pack(b'{"payload": "hello"}'), headers=headers)
    assert (await node.pull("t"))["messages"][0]["payload"] == "hello"


async def test_a_body_that_unpacks_to_too_much_is_refused_before_it_has() -> None:
    async with http_node(door=HttpDoorSettings(port=0, body_bytes_max=100_000)) as node:
        bomb = gzip.compress(bytes(500_000_000), 1)
        headers = {"content-type": "application/octet-stream", "content-encoding": "gzip"}
        for body in (bomb[:90_000], gzip.compress(bytes(100_001))):
            refused = await node.http.post("/topics/t/messages", content=body, headers=headers)
            assert refused.status_code == 413, refused.text
        assert await node.well("GET", "/topics") == {"topics": []}


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"content-encoding": "br"}, b"x", 415),
        ({"content-encoding": "gzip"}, b"no gzip", 400),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}")[:-3], 400),
        ({"content-encoding": "gzip"}, gzip.compress(b"{}") + b"more", 400),
    ],
    ids=["unknown", "not gzip", "cut off", "too long"],
)
async def test_a_body_that_is_not_what_its_encoding_says_is_refused(
    node: HttpNode, headers: dict[str, str], body: bytes, status: int
) -> None:
    refused = await node.http.post("/topics/t/messages", content=body, headers=headers)
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"


async def test_a_body_that_is_too_large_is_refused_before_it_is_read() -> None:
    async with http_node(door=HttpDoorSettings(port=0, body_bytes_max=1_000)) as node:
        refused = await node.http.post("/topics/t/messages", content=bytes(1_001))
        assert refused.status_code == 413


async def test_a_payload_over_the_limit_is_refused_with_the_limit(node: HttpNode) -> None:
    refused = await node.http.post("/topics/t/messages", json={"payload": "x" * (2**20 + 1)})
    assert refused.status_code == 413
    assert refused.json()["limit"] == 2**20
    assert refused.json()["type"] == "urn:sealane:limit-exceeded"


async def test_a_full_queue_says_when_to_come_back(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t", json={"messages_max": 1})
    await node.well("PUT", "/topics/t/subscriptions/s")
    await node.publish("t", "one")
    refused = await node.http.post("/topics/t/messages", json={"payload": "two"})
    assert refused.status_code == 429
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["type"] == "urn:sealane:queue-full"


async def test_a_topic_that_may_not_be_made_by_using_it_is_not_found() -> None:
    async with http_node(settings=NodeSettings(topics=TopicSettings(auto_create=False))) as node:
        refused = await node.http.post("/topics/t/messages", json={"payload": "x"})
        assert refused.status_code == 404
        assert refused.json()["name"] == "default/t"


async def test_whoever_has_used_up_a_quota_is_told_when_to_come_back() -> None:
    async with http_node(settings=NodeSettings(security=SecuritySettings())) as node:
        async with sealane.connect(node.url) as lane:
            await lane.administer("quota.set", scope="domain", name="default", messages_per_second=1)
        statuses = [(await node.http.post("/topics/t/messages", json={"payload": "x"})) for _ in range(4)]
        refused = [answer for answer in statuses if answer.status_code == 429]
        assert refused
        assert int(refused[0].headers["retry-after"]) >= 1
        assert refused[0].json()["what"] == "messages"
