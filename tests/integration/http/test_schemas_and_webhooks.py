"""The schema registry and webhooks by HTTP."""

from __future__ import annotations

from dataclasses import replace

from sealane.node import NodeSettings
from sealane.node.webhooks.settings import WebhookSettings
from tests.http_node import HttpNode, http_node

ORDER = '{"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}}'
WIDER = '{"type": "object", "required": ["order"], "properties": {"order": {"type": "number"}}}'
OTHER = '{"type": "object", "required": ["order"], "properties": {"order": {"type": "string"}}}'


async def test_a_schema_is_registered_once_and_shown(node: HttpNode) -> None:
    made = await node.http.post("/schemas/orders", json={"schema": ORDER})
    again = await node.http.post("/schemas/orders", json={"schema": ORDER})
    assert (made.status_code, again.status_code) == (201, 200)
    assert made.json() | {"new": False} == again.json()
    assert (made.json()["version"], made.json()["compatibility"], made.json()["validate"]) == (1, "backward", True)
    shown = await node.well("GET", "/schemas/orders/versions/latest")
    assert shown["schema"] == ORDER
    assert await node.well("GET", "/schemas/orders/versions/1") == shown
    listed = await node.well("GET", "/schemas")
    assert [each["topic"] for each in listed["schemas"]] == ["default/orders"]


async def test_what_does_not_fit_is_refused_with_the_path_of_the_field(node: HttpNode) -> None:
    await node.well("POST", "/schemas/orders", json={"schema": ORDER})
    body = {"messages": [{"payload": '{"order": 1}'}, {"payload": '{"order": "one"}'}]}
    refused = await node.http.post("/topics/orders/messages", json=body)
    assert refused.status_code == 422
    problem = refused.json()
    assert (problem["type"], problem["index"], problem["version"]) == ("urn:sealane:schema-mismatch", 1, 1)
    assert "order" in problem["path"]
    assert (await node.well("GET", "/topics/orders"))["partitions"][0]["end"] == 0
    await node.well("POST", "/topics/orders/messages", json={"payload": '{"order": 1}'})


async def test_a_schema_that_is_not_compatible_is_a_conflict(node: HttpNode) -> None:
    await node.well("POST", "/schemas/orders", json={"schema": ORDER})
    verdict = await node.well("POST", "/schemas/orders/check", json={"schema": OTHER})
    assert not verdict["compatible"]
    assert verdict["problems"]
    refused = await node.http.post("/schemas/orders", json={"schema": OTHER})
    assert refused.status_code == 409
    assert (await node.http.post("/schemas/orders", json={"schema": WIDER})).status_code == 201
    await node.well("PATCH", "/schemas/orders", json={"compatibility": "none", "validate": False})
    assert (await node.http.post("/schemas/orders", json={"schema": OTHER})).json()["version"] == 3
    await node.well("POST", "/topics/orders/messages", json={"payload": "no JSON at all"})
    assert (await node.well("DELETE", "/schemas/orders/versions/2"))["removed"] == [2]
    assert (await node.well("DELETE", "/schemas/orders"))["removed"] == [1, 3]
    assert (await node.http.get("/schemas/orders")).status_code == 404


async def test_what_is_no_schema_is_refused(node: HttpNode) -> None:
    for wrong in ({"schema": "{"}, {"schema": '{"type": "colour"}'}, {"schema": "{}", "format": "xml"}, {}):
        assert (await node.http.post("/schemas/orders", json=wrong)).status_code == 422
    for version in ("0", "x", "-1", "99"):
        assert (await node.http.get(f"/schemas/orders/versions/{version}")).status_code in (404, 422)


HOOK = "/topics/orders/subscriptions/push/webhook"


async def test_a_webhook_is_made_shown_and_removed() -> None:
    settings = replace(NodeSettings(), webhooks=WebhookSettings(hosts="hooks.example.com"))
    async with http_node(settings=settings) as node:
        made = await node.http.post(HOOK, json={"url": "https://hooks.example.com/orders"})
        assert made.status_code == 201, made.text
        assert made.json()["secret"].startswith("whsec_")
        shown = await node.well("GET", HOOK)
        assert "secret" not in shown
        assert (await node.well("GET", "/webhooks"))["webhooks"] == [shown]
        assert (await node.http.post(HOOK, json={"url": "https://hooks.example.com/orders"})).status_code == 409
        assert (await node.well("POST", f"{HOOK}/pause"))["state"] == "paused"
        assert (await node.well("POST", f"{HOOK}/resume"))["state"] in ("on", "broken")
        rotated = await node.well("POST", f"{HOOK}/rotate", json={"keep_seconds": 60})
        assert rotated["secret"] != made.json()["secret"]
        assert (await node.well("DELETE", HOOK))["removed"]
        assert (await node.http.get(HOOK)).status_code == 404


async def test_a_host_that_is_not_allowed_is_refused(node: HttpNode) -> None:
    refused = await node.http.post(HOOK, json={"url": "https://hooks.example.com/orders"})
    assert refused.status_code == 422
    assert "webhooks.hosts" in refused.json()["detail"]
