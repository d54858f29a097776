"""What cannot be is refused, with the field, the limit and the value; and nothing is stored."""

from __future__ import annotations

import pytest

import sealane
from sealane.message import Limits
from sealane.node import NodeSettings
from tests.scenarios.broker import Broker, take, take_payloads


@pytest.mark.parametrize(
    ("message", "field", "limit", "value"),
    [
        ({"payload": b"x" * (1024 * 1024 + 1)}, "payload", 1024 * 1024, 1024 * 1024 + 1),
        ({"payload": b"", "key": b"k" * 1025}, "key", 1024, 1025),
        ({"payload": b"", "headers": {f"h{index}": "" for index in range(65)}}, "headers", 64, 65),
        ({"payload": b"", "headers": {"name": "v" * 4093}}, "header", 4096, 4097),
        ({"payload": b"", "headers": {"ü": "ü" * 2048}}, "header", 4096, 4098),
    ],
)
async def test_a_message_over_a_limit(lane: sealane.Lane, message, field: str, limit: int, value: int) -> None:
    payload = message.pop("payload")
    with pytest.raises(sealane.LimitExceeded) as refused:
        await lane.publish("orders", payload, **message)
    assert refused.value.field.startswith(field)
    assert (refused.value.limit, refused.value.value) == (limit, value)
    for told in (field, f"{limit:,}", f"{value:,}"):
        assert told in str(refused.value)
    message["payload"] = payload


@pytest.mark.parametrize(
    "message",
    [
        {"payload": b"x" * 1024 * 1024},
        {"payload": b"", "key": b"k" * 1024},
        {"payload": b"", "headers": {f"h{index}": "" for index in range(64)}},
        {"payload": b"", "headers": {"name": "v" * 4092}},
        {"payload": b"", "priority": 1},
        {"payload": b"", "priority": 10},
    ],
)
async def test_a_message_at_a_limit_is_fine(lane: sealane.Lane, message) -> None:
    rest = {name: value for name, value in message.items() if name != "payload"}
    await lane.publish("orders", message["payload"], **rest)
    assert await take_payloads(lane.consume("orders", "s"), 1) == [message["payload"]]


@pytest.mark.parametrize(
    ("field", "message"),
    [
        ("payload", {"payload": "text"}),
        ("payload", {"payload": None}),
        ("payload", {"payload": bytearray(b"bytes")}),
        ("key", {"payload": b"", "key": "text"}),
        ("headers", {"payload": b"", "headers": {"name": 7}}),
        ("headers", {"payload": b"", "headers": {7: "value"}}),
        ("headers", {"payload": b"", "headers": ["name", "value"]}),
        ("priority", {"payload": b"", "priority": 0}),
        ("priority", {"payload": b"", "priority": 11}),
        ("priority", {"payload": b"", "priority": "high"}),
        ("priority", {"payload": b"", "priority": 5.5}),
    ],
)
async def test_a_field_of_the_wrong_kind(lane: sealane.Lane, field: str, message) -> None:
    rest = {name: value for name, value in message.items() if name != "payload"}
    with pytest.raises(sealane.InvalidMessage) as refused:
        await lane.publish("orders", message["payload"], **rest)
    assert refused.value.field.startswith(field.rstrip("s"))


async def test_a_wrong_payload_among_many(lane: sealane.Lane) -> None:
    with pytest.raises(sealane.InvalidMessage):
        await lane.publish_many("orders", [b"good", "text"])
    with pytest.raises(sealane.LimitExceeded):
        await lane.publish_many("orders", [b"good", b"x" * (1024 * 1024 + 1)])
    assert await lane.topics() == []


async def test_limits_are_settings(broker: Broker) -> None:
    lane = await broker.restart(NodeSettings(limits=Limits(payload_bytes_max=10, name_chars_max=8)))
    await lane.publish("orders", b"x" * 10)
    with pytest.raises(sealane.LimitExceeded, match="limits"):
        await lane.publish("orders", b"x" * 11)
    with pytest.raises(sealane.InvalidName):
        await lane.publish("a-longer-name", b"")


NAMES = ["", " ", "a b", "a/b/c", "/a", "a/", "_system", "x" * 129, "ä", ".", "..", "a\n", "a#b"]


@pytest.mark.parametrize("name", NAMES)
async def test_a_name_that_cannot_be_a_topics(lane: sealane.Lane, name: str) -> None:
    for call in (lane.publish(name, b""), lane.create_topic(name), take(lane.consume(name, "s"), 1)):
        with pytest.raises(sealane.InvalidName) as refused:
            await call
        assert refused.value.kind in ("topic", "domain")
    assert await lane.topics() == []


@pytest.mark.parametrize("name", [name for name in NAMES if name] + ["a/b"])
async def test_a_name_that_cannot_be_a_subscriptions(lane: sealane.Lane, name: str) -> None:
    with pytest.raises(sealane.InvalidName) as refused:
        await take(lane.consume("orders", name), 1)
    assert refused.value.kind == "subscription"


async def test_names_at_the_limit_are_fine(lane: sealane.Lane) -> None:
    name = "N" * 64 + "a.b_c-9" + "x" * 57
    await lane.publish(name, b"a")
    assert await take_payloads(lane.consume(name, name), 1) == [b"a"]


async def test_every_error_is_a_sealane_error() -> None:
    for name in sealane.__all__:
        found = getattr(sealane, name)
        if isinstance(found, type) and issubclass(found, Exception):
            assert issubclass(found, sealane.SealaneError)
