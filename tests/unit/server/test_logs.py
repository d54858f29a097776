"""One shape for everything that the process logs, and nothing secret in it."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import Iterator

import pytest

import sealane
from sealane.log import get_log
from sealane.server.logs import LogFormat, configure_logs
from tests.unit.node.running_node import DEADLINE_SECONDS, running_node, until

PAYLOAD, KEY, HEADER = "marker-payload", "marker-key", "marker-header"


@pytest.fixture(autouse=True)
def logging_as_it_was() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = list(root.handlers), root.level
    levels = {name: logging.getLogger(name).level for name in ("uvicorn.access", "asyncio")}
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    for name, before in levels.items():
        logging.getLogger(name).setLevel(before)
    logging.captureWarnings(False)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_object_with_its_fields() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream=stream)

    get_log("sealane.node").info("a topic was created", topic="default/orders", partitions=3)

    (line,) = lines(stream)
    assert line.pop("timestamp")
    assert line == {
        "event": "a topic was created",
        "topic": "default/orders",
        "partitions": 3,
        "level": "info",
        "logger": "sealane.node",
    }


def test_what_a_library_logs_has_the_same_shape() -> None:
    stream = io.StringIO()
    configure_logs("json", "info", stream=stream)
    library = logging.getLogger("uvicorn.error")
    library.addHandler(logging.StreamHandler(stream))
    configure_logs("json", "info", stream=stream)

    library.error("Exception in server process [%d]", 42)

    (line,) = lines(stream)
    said = ("Exception in server process [42]", "uvicorn.error", "error")
    assert (line["event"], line["logger"], line["level"]) == said


def test_people_read_the_sentence_and_its_fields_on_one_line() -> None:
    stream = io.StringIO()
    configure_logs("console", "info", stream=stream)

    get_log("sealane.node").warning("storage is full", used_bytes=100)

    (line,) = stream.getvalue().splitlines()
    assert "storage is full" in line
    assert "used_bytes=100" in line
    assert "\x1b" not in line


def test_what_is_below_the_level_is_not_logged_and_configuring_again_replaces() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure_logs("json", "debug", stream=first)
    configure_logs("json", "warning", stream=second)

    get_log("sealane.node").info("quiet")
    get_log("sealane.node").error("loud")

    assert first.getvalue() == ""
    assert [line["event"] for line in lines(second)] == ["loud"]


def test_without_any_of_this_an_event_is_an_ordinary_record(caplog) -> None:
    get_log("sealane.node").warning("storage is full", limit="the disk", used_bytes=100)

    assert caplog.messages == ["storage is full limit='the disk' used_bytes=100"]


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_traceback_shows_no_values(format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logs(format, "debug", stream=stream)

    def handle(payload: bytes) -> None:
        raise RuntimeError("it did not work")

    try:
        handle(PAYLOAD.encode())
    except RuntimeError:
        get_log("sealane.node").exception("a task crashed")

    assert "it did not work" in stream.getvalue()
    assert "in handle" in stream.getvalue()
    assert PAYLOAD not in stream.getvalue()


async def live_a_whole_life() -> None:
    """Publish, fail, die, be driven back, be acknowledged, be trimmed; with a marker wherever a secret may be."""
    async with running_node() as running:
        lane = running.lane
        await lane.publish("orders", PAYLOAD.encode(), key=KEY.encode(), headers={"name": HEADER}, priority=7)
        once = sealane.Retry("fixed", 0.0, attempts_max=1)
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for message in lane.consume("orders", subscription="billing", retry=once):
                await message.nack(reason="no such customer")
                break
        await until(lambda: "default/orders.billing.dead" in running.node.topics)
        await until(lambda: running.node.measures.topic("default/orders").subscription("billing").dead_lettered == 1)
        await lane.redrive("orders", "billing")
        async with asyncio.timeout(DEADLINE_SECONDS):
            async for message in lane.consume("orders", subscription="billing", retry=once):
                await message.ack(confirm=True)
                break
        await lane.publish("orders", PAYLOAD.encode(), ttl=1, key=KEY.encode())
        await lane.seek("orders", "billing", "latest")
        await lane.configure_topic("orders", retention_seconds=0)
        running.clock.pass_seconds(1)
        await running.node._retention.apply()
        await lane.unsubscribe("orders", "billing")
        await lane.delete_topic("orders")


@pytest.mark.parametrize("format", ["json", "console"])
async def test_a_message_s_whole_life_is_told_and_nothing_that_is_in_it(format: LogFormat) -> None:
    stream = io.StringIO()
    configure_logs(format, "debug", stream=stream)

    await live_a_whole_life()

    text = stream.getvalue()
    for marker in (PAYLOAD, KEY, HEADER):
        assert marker not in text
        assert marker.encode().hex() not in text
    for sentence in (
        "the node is open",
        "a topic was created",
        "published",
        "a consumer joined",
        "granted",
        "failed",
        "dead-lettered",
        "messages are dead letters now",
        "dead letters were driven back",
        "acked",
        "a subscription was sought",
        "a topic was configured",
        "messages are past retention",
        "a subscription was deleted",
        "a topic was deleted",
    ):
        assert sentence in text, sentence


async def test_a_batch_is_one_line_however_many_messages_it_has() -> None:
    stream = io.StringIO()
    configure_logs("json", "debug", stream=stream)
    async with running_node() as running:
        await running.lane.publish_many("orders", [b"x"] * 1_000)

    published = [line for line in lines(stream) if line["event"] == "published"]
    assert [(line["first_offset"], line["last_offset"], line["count"]) for line in published] == [(0, 999, 1_000)]
