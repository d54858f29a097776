"""`sealane log inspect`: what is in a data directory, as its user sees it."""

from __future__ import annotations

import json

from tests.integration.log_cli.written import CARTS, ORDERS, ORDERS_1, sealane


async def test_inspect_lists_topics_and_partitions_of_a_running_node(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.publish(ORDERS_1, b"c")
    await node.publish(CARTS, b"d", sealed=False)
    await node.engine.trim(ORDERS, messages_before=1)
    output = sealane("inspect", node.directory).output
    assert "default/orders" in output
    assert "shop/carts" in output
    found = json.loads(sealane("inspect", node.directory, "--json").output)
    topics = {topic["topic"]: topic["partitions"] for topic in found["topics"]}
    assert [(p["partition"], p["start"], p["end"], p["messages"]) for p in topics["orders"]] == [
        (0, 1, 2, 1),
        (1, 0, 1, 1),
    ]
    assert topics["orders"][0]["sealed"] == "yes"
    assert topics["carts"][0]["sealed"] == "no"
    assert topics["carts"][0]["journal_entries"] == 1
    assert topics["carts"][0]["formats"] == ["wal"]


async def test_inspect_shows_the_same_offsets_after_compaction(node):
    await node.publish(ORDERS, b"a", b"b")
    await node.publish(CARTS, b"c", sealed=False)
    before = json.loads(sealane("inspect", node.directory, "--json").output)
    await node.compact()
    after = json.loads(sealane("inspect", node.directory, "--json").output)
    for old, new in zip(before["topics"], [t for t in after["topics"] if t["topic"] != "filler"], strict=True):
        for was, partition in zip(old["partitions"], new["partitions"], strict=True):
            assert {k: was[k] for k in ("start", "end", "messages", "lost")} == {
                k: partition[k] for k in ("start", "end", "messages", "lost")
            }
    formats = {topic["topic"]: topic["partitions"][0]["formats"] for topic in after["topics"]}
    assert (formats["orders"], formats["carts"]) == (["log"], ["arrow"])


async def test_inspect_lists_records_and_what_they_hold(node):
    await node.publish(ORDERS, b"a", b"b")
    output = sealane("inspect", node.directory, "--records").output
    assert "messages default/orders#1:0 0–1" in output
    assert "journal default/orders#1:0 0–0" in output
    listed = json.loads(sealane("inspect", node.directory, "--records", "--json").output)["records"]
    assert [e["base"] for r in listed for e in r["entries"] if e["kind"] == "messages"] == [0]


async def test_a_dropped_topic_is_not_shown(node):
    await node.publish(ORDERS, b"a")
    await node.engine.drop(ORDERS)
    assert "orders" not in sealane("inspect", node.directory).output


async def test_an_empty_directory_has_no_topics_yet(node):
    assert "no topics yet" in sealane("inspect", node.directory).output


async def test_the_directory_comes_from_the_option_or_the_environment(node, monkeypatch):
    await node.publish(ORDERS, b"a")
    assert "orders" in sealane("inspect", "--data", node.directory).output
    monkeypatch.setenv("SEALANE_DATA", str(node.directory))
    assert "orders" in sealane("inspect").output
