"""Topics, subscriptions, exchanges and transactions by HTTP."""

from __future__ import annotations

import asyncio

import pytest

import sealane
from tests.http_node import HttpNode


async def test_a_topic_is_made_once_and_shown(node: HttpNode) -> None:
    made = await node.http.put("/topics/t", json={"partitions": 2, "retention_seconds": 60})
    again = await node.http.put("/topics/t", json={"partitions": 2, "retention_seconds": 60})
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() == again.json() == await node.well("GET", "/topics/t")
    assert made.json()["settings"]["partitions"] == 2
    assert made.json()["partitions"] == [{"partition": each, "start": 0, "end": 0} for each in (0, 1)]
    assert await node.well("GET", "/topics") == {"topics": ["t"]}


async def test_a_topic_that_exists_otherwise_is_a_conflict(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t", json={"partitions": 2})
    refused = await node.http.put("/topics/t", json={"partitions": 3})
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:sealane:already-exists"


async def test_a_topic_is_changed_and_deleted(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t")
    changed = await node.well("PATCH", "/topics/t", json={"messages_max": 10, "partitions": 3})
    assert (changed["settings"]["messages_max"], len(changed["partitions"])) == (10, 3)
    assert (await node.http.patch("/topics/t", json={"sealed": False})).status_code == 422
    assert (await node.http.delete("/topics/t")).status_code == 204
    assert (await node.http.delete("/topics/t")).status_code == 404


@pytest.mark.parametrize("settings", [{"partitions": 0}, {"colour": "red"}, {"partitions": "2"}, []])
async def test_settings_that_a_topic_cannot_have_are_refused(node: HttpNode, settings: object) -> None:
    refused = await node.http.put("/topics/t", json=settings)
    assert refused.status_code == 422
    assert await node.well("GET", "/topics") == {"topics": []}


@pytest.mark.parametrize("name", ["a b", "_mine", "x" * 129])
async def test_a_name_that_cannot_be_one_is_refused(node: HttpNode, name: str) -> None:
    refused = await node.http.put(f"/topics/{name}")
    assert refused.status_code == 422
    assert refused.json()["type"] == "urn:sealane:invalid-name"


async def test_a_subscription_that_is_made_keeps_messages_from_its_start_on(node: HttpNode) -> None:
    await node.publish("t", "before")
    made = await node.well(
        "PUT", "/topics/t/subscriptions/s", json={"start": {"at": "latest"}, "lease_seconds": 5, "mode": "exclusive"}
    )
    assert (made["mode"], made["lease_seconds"], made["depth"]) == ("exclusive", 5, 0)
    await node.publish("t", "after")
    assert [message["payload"] for message in (await node.pull("t"))["messages"]] == ["after"]
    listed = await node.well("GET", "/topics/t/subscriptions")
    assert [each["name"] for each in listed["subscriptions"]] == ["s"]
    assert (await node.http.put("/topics/t/subscriptions/s", json={"mode": "queue"})).status_code == 409
    assert (await node.http.delete("/topics/t/subscriptions/s")).status_code == 204
    assert (await node.http.get("/topics/t/subscriptions/s")).status_code == 404


async def test_a_filter_decides_what_comes(node: HttpNode) -> None:
    await node.well("PUT", "/topics/t/subscriptions/s", json={"filter": "priority > 5"})
    await node.publish("t", "low", priority=1)
    await node.publish("t", "high", priority=9)
    assert [message["payload"] for message in (await node.pull("t"))["messages"]] == ["high"]
    refused = await node.http.put("/topics/t/subscriptions/u", json={"filter": "priority >"})
    assert refused.status_code == 422


async def test_a_subscription_begins_again_from_anywhere(node: HttpNode) -> None:
    await node.publish("t", "a", "b", "c")
    pulled = await node.pull("t")
    await node.settle("t", pulled["lease"], "ack")
    seek = "/topics/t/subscriptions/s/seek"
    assert await node.well("POST", seek, json={"offsets": {"0": 1}}) == {"offsets": {"0": 1}}
    assert [message["payload"] for message in (await node.pull("t"))["messages"]] == ["b", "c"]
    created = pulled["messages"][0]["created"]
    assert await node.well("POST", seek, json={"time": created}) == {"offsets": {"0": 0}}
    assert await node.well("POST", seek, json={"at": "latest"}) == {"offsets": {"0": 3}}
    unclear = ({"time": 0}, {"time": -1e-308}, {"time": "0"}, {"time": "2026-01-31T12:00:00"})
    for wrong in ({}, {"at": "noon"}, {"at": "latest", "offsets": {"0": 1}}, *unclear):
        assert (await node.http.post(seek, json=wrong)).status_code == 422


async def test_stored_messages_can_be_looked_at(node: HttpNode) -> None:
    await node.publish("t", "a", "b", "c")
    looked = await node.well("GET", "/topics/t/partitions/0/messages?offset=1&max=1")
    assert [message["payload"] for message in looked["messages"]] == ["b"]
    assert looked["next_offset"] == 2
    end = await node.well("GET", "/topics/t/partitions/0/messages?offset=3")
    assert end == {"messages": [], "next_offset": 3}
    assert (await node.http.get("/topics/t/partitions/7/messages")).status_code == 422


async def test_an_exchange_leads_messages_to_topics(node: HttpNode) -> None:
    await node.well("PUT", "/exchanges/x", json={"kind": "topic"})
    await node.well("POST", "/exchanges/x/bindings", json={"topic": "eu", "key": "orders.eu.*"})
    await node.well("POST", "/exchanges/x/bindings", json={"topic": "all", "key": "orders.#"})
    stored = await node.well("POST", "/exchanges/x/messages?key=orders.eu.1", json={"payload": "hello"})
    assert sorted(stored["receipts"]) == ["default/all", "default/eu"]
    unbound = await node.http.delete("/exchanges/x/bindings", params={"topic": "eu", "key": "orders.eu.*"})
    assert unbound.json()["bindings"] == [{"topic": "default/all", "key": "orders.#"}]
    assert [each["name"] for each in (await node.well("GET", "/exchanges"))["exchanges"]] == ["x"]
    nowhere = await node.http.post("/exchanges/x/messages?key=other", json={"payload": "hello"})
    assert nowhere.status_code == 404
    assert nowhere.json()["type"] == "urn:sealane:unroutable"
    assert (await node.http.put("/exchanges/x", json={"kind": "fanout"})).status_code == 409
    assert (await node.http.get("/exchanges/y")).status_code == 404


async def test_a_transaction_publishes_and_acknowledges_together_once(node: HttpNode) -> None:
    await node.publish("orders", "order 42")
    pulled = await node.pull("orders")
    order = {
        "publishes": [{"topic": "invoices", "messages": [{"payload": "invoice 42"}]}],
        "acks": [{"topic": "orders", "subscription": "s", "lease": pulled["lease"]}],
    }
    done = [await node.well("PUT", "/transactions/42", json=order) for _ in range(2)]
    assert [each["repeated"] for each in done] == [False, True]
    assert (await node.well("GET", "/transactions/42"))["done"]
    assert not (await node.well("GET", "/transactions/43"))["done"]
    assert [message["payload"] for message in (await node.pull("invoices"))["messages"]] == ["invoice 42"]
    assert (await node.pull("orders", wait=0))["lease"] is None


async def test_a_transaction_whose_lease_is_over_does_nothing(node: HttpNode) -> None:
    await node.publish("orders", "order 42")
    pulled = await node.pull("orders")
    await node.settle("orders", pulled["lease"], "nack")
    order = {
        "publishes": [{"topic": "invoices", "messages": [{"payload": "invoice 42"}]}],
        "acks": [{"topic": "orders", "subscription": "s", "lease": pulled["lease"]}],
    }
    refused = await node.http.put("/transactions/42", json=order)
    assert refused.status_code == 409
    assert refused.json()["type"] == "urn:sealane:transaction-aborted"
    assert await node.well("GET", "/topics") == {"topics": ["orders"]}


async def test_transactions_of_another_domain_are_not_ones_own(node: HttpNode) -> None:
    refused = await node.http.put(str(node.http.base_url).replace("/default", "/other") + "transactions/1", json={})
    assert refused.status_code == 422


async def test_a_topic_of_another_domain_is_another_topic(node: HttpNode) -> None:
    other = str(node.http.base_url).replace("/default", "/shop")
    await node.well("POST", f"{other}topics/t/messages", json={"payload": "x"})
    assert await node.well("GET", "/topics") == {"topics": []}
    assert await node.well("GET", f"{other}topics") == {"topics": ["t"]}


async def test_what_is_published_by_one_door_is_consumed_by_another(node: HttpNode) -> None:
    async with sealane.connect(node.url) as lane, asyncio.timeout(60):
        await node.publish("t", "by http", headers={"a": "b"})
        async for message in lane.consume("t", "s"):
            assert (message.payload, message.headers) == (b"by http", {"a": "b"})
            await message.ack(confirm=True)
            break
        await lane.publish("t", b"by native")
        assert [each["payload"] for each in (await node.pull("t"))["messages"]] == ["by native"]
