"""Topics, subscriptions, exchanges and dead letters by the command line."""

from __future__ import annotations

import asyncio
import json
import time

import sealane
from sealane.delivery.config import Retry
from tests.integration.cli.shell import DEADLINE_SECONDS, Shell


def refused(shell: Shell, *arguments: str) -> tuple[int, str]:
    done = shell.run(*arguments)
    return done.returncode, done.stderr.decode()


def test_a_topic_from_its_making_to_its_end(shell: Shell) -> None:
    shell.text("topic", "create", "life", "--partitions", "2", "--retention", "1d", "--messages-max", "10")
    shell.text("topic", "create", "life", "--partitions", "2", "--retention", "24h", "--messages-max", "10")
    code, problem = refused(shell, "topic", "create", "life", "--partitions", "3")
    assert (code, "already exists" in problem) == (1, True)

    shell.text("topic", "configure", "life", "--partitions", "4", "--no-messages-max", "--when-full", "drop-oldest")
    found = shell.json("topic", "show", "life", "--json")
    assert found["name"] == "default/life"
    assert [each["partition"] for each in found["partitions"]] == [0, 1, 2, 3]
    assert found["config"]["retention_seconds"] == 86_400
    assert found["config"]["messages_max"] is None
    assert found["config"]["when_full"] == "drop-oldest"
    assert refused(shell, "topic", "configure", "life")[0] == 2

    assert "default/life" in {each["name"] for each in shell.json("topic", "list", "--json")}
    shown = shell.text("topic", "list")
    assert [line.split()[:3] for line in shown.splitlines() if "life" in line] == [["default/life", "4", "0"]]
    assert "1d after they are settled" in shell.text("topic", "show", "life")

    code, problem = refused(shell, "topic", "delete", "life")
    assert (code, "give --yes" in problem) == (2, True)
    shell.text("topic", "delete", "life", "--yes")
    code, problem = refused(shell, "topic", "show", "life")
    assert (code, "does not exist" in problem) == (1, True)


def test_a_subscription_is_shown_moved_and_deleted(shell: Shell) -> None:
    shell.text("publish", "moved", "--lines", input=b"1\n2\n3\n")
    assert shell.text("consume", "moved", "-s", "reader") == "1\n2\n3\n"

    (found,) = shell.json("subscription", "list", "moved", "--json")
    assert (found["topic"], found["name"], found["mode"], found["depth"]) == ("default/moved", "reader", "queue", 0)
    assert found["positions"] == {"0": 3}
    assert "16 attempts" in shell.text("subscription", "show", "moved", "reader")

    assert refused(shell, "subscription", "seek", "moved", "reader", "earliest")[0] == 2
    assert shell.json("subscription", "seek", "moved", "reader", "0:1", "--yes", "--json") == {"0": 1}
    assert shell.text("consume", "moved", "-s", "reader") == "2\n3\n"

    code, problem = refused(shell, "subscription", "show", "moved", "redaer")
    assert (code, "subscriptions there: reader" in problem) == (1, True)
    shell.text("subscription", "delete", "moved", "reader", "--yes")
    assert shell.json("subscription", "list", "moved", "--json") == []


def test_an_exchange_routes_by_its_bindings(shell: Shell) -> None:
    shell.text("exchange", "declare", "events", "--kind", "topic")
    shell.text("exchange", "bind", "events", "audit", "--key", "#")
    shell.text("exchange", "bind", "events", "placed", "--key", "order.*")
    shell.text("exchange", "bind", "events", "placed", "--key", "gone")
    shell.text("exchange", "unbind", "events", "placed", "--key", "gone")

    (found,) = [each for each in shell.json("exchange", "list", "--json") if each["name"] == "default/events"]
    assert found["kind"] == "topic"
    assert found["bindings"] == [
        {"key": "#", "topic": "default/audit"},
        {"key": "order.*", "topic": "default/placed"},
    ]
    receipts = shell.json("exchange", "publish", "events", "order.new", "hi", "--json")
    assert sorted(receipts) == ["default/audit", "default/placed"]
    assert shell.text("consume", "placed", "-s", "s") == "hi\n"
    assert "order.*" in shell.text("exchange", "list")

    code, problem = refused(shell, "exchange", "publish", "nowhere", "k", "hi")
    assert (code, "does not exist" in problem) == (1, True)


def give_up(shell: Shell, topic: str, subscription: str, messages: int) -> None:
    """Let a subscription's messages die, for alternating reasons."""

    async def work() -> None:
        address = json.loads((shell.data / "node.json").read_text())["doors"]["native"]
        async with sealane.connect(f"sealane://{address}") as lane:
            await lane.publish_many(topic, [b"letter %d" % number for number in range(messages)])
            left = messages
            async for message in lane.consume(topic, subscription, retry=Retry(attempts_max=1)):
                await message.nack(reason="timeout" if message.offset % 2 else "bad address", confirm=True)
                left -= 1
                if not left:
                    break

    asyncio.run(work())


def wait_for_dead_letters(shell: Shell, topic: str, messages: int) -> dict[str, object]:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while True:
        found = [each for each in shell.json("dlq", "list", "--json") if each["topic"] == f"default/{topic}"]
        if found and found[0]["messages"] == messages:
            listed: dict[str, object] = found[0]
            return listed
        assert time.monotonic() < deadline, found


def test_dead_letters_are_listed_shown_and_sent_back(shell: Shell) -> None:
    assert refused(shell, "dlq", "show", "posted", "reader")[0] == 1
    give_up(shell, "posted", "reader", 4)
    assert wait_for_dead_letters(shell, "posted", 4) == {
        "topic": "default/posted",
        "subscription": "reader",
        "dead_topic": "default/posted.reader.dead",
        "messages": 4,
    }

    first, second = shell.objects("dlq", "show", "posted", "reader", "--count", "2", "--json")
    assert (first["payload"], first["reason"], first["attempts"], first["headers"]) == (
        "letter 0",
        "bad address",
        1,
        {},
    )
    assert first["origin"] == {"topic": "default/posted", "subscription": "reader", "partition": 0, "offset": 0}
    assert second["reason"] == "timeout"
    shown = shell.text("dlq", "show", "posted", "reader")
    assert len(shown.splitlines()) == 5
    assert "default/posted:0@3" in shown

    only = ["--filter", "headers['sealane-dead-reason'] = 'timeout'"]
    planned = shell.json("dlq", "redrive", "posted", "reader", "--dry-run", "--json", *only)
    assert planned == {"dry_run": True, "messages": 2, "reasons": {"timeout": 2}}
    assert refused(shell, "dlq", "redrive", "posted", "reader")[0] == 2
    assert "2 messages are back" in shell.text("dlq", "redrive", "posted", "reader", "--yes", *only)
    assert shell.json("dlq", "redrive", "posted", "reader", "--yes", "--max", "1", "--json")["messages"] == 1
    assert "1 message is back" in shell.text("dlq", "redrive", "posted", "reader", "--yes", "--rate", "100")

    letters = sorted(shell.text("consume", "posted", "-s", "reader").splitlines())
    assert letters == [f"letter {number}" for number in range(4)]
    assert shell.text("dlq", "show", "posted", "reader") == ""
    assert "0 messages are back" in shell.text("dlq", "redrive", "posted", "reader")
