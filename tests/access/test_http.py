"""The verdicts by HTTP are those of the same table as by every other door."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from sealane.client.embedded import in_process
from sealane.doors.http.app import make_api
from sealane.doors.http.watched import Watched, Watching
from sealane.node import NodeSettings
from sealane.security.settings import AuditSettings, SecuritySettings
from tests.access.commands import COMMANDS, NO_LEASE, PULLING, Rule, administration
from tests.access.doors import Guests
from tests.access.people import FOREIGN, OWN, PEOPLE
from tests.access.test_matrix import arrange
from tests.http_node import HttpNode, http_node

REFUSED = (401, 403)
EMPTY: tuple[dict[str, list[str]], ...] = ({"topics": []}, {"exchanges": []})
"""Of what someone may not see, nothing is told: that is a refusal too."""


@dataclass(frozen=True)
class Asked:
    command: str
    """By its name in the table."""
    method: str
    path: str
    """As the OpenAPI document has it."""
    json: Any = None
    values: dict[str, str] = field(default_factory=dict)


def asked(command: str, method: str, path: str, json: Any = None, **values: str) -> Asked:
    return Asked(command, method, path, json, {"topic": "t", "subscription": "s", "exchange": "t-exchange", **values})


WEBHOOK = "/topics/{topic}/subscriptions/{subscription}/webhook"
ASKED = [
    asked("publish", "POST", "/topics/{topic}/messages", {"payload": "x"}),
    asked("publish_to_exchange", "POST", "/exchanges/{exchange}/messages?key=key", {"payload": "x"}),
    asked("pull", "GET", "/topics/{topic}/subscriptions/{subscription}/messages", subscription="pulling"),
    *(
        asked(
            "held",
            "POST",
            f"/topics/{{topic}}/subscriptions/{{subscription}}/leases/{{lease}}/{how}",
            said,
            subscription="pulling",
            lease=NO_LEASE,
        )
        for how, said in (("ack", {}), ("nack", {}), ("extend", {"seconds": 1}))
    ),
    asked("attach", "GET", "/topics/{topic}/events?start=latest"),
    asked("topics", "GET", "/topics"),
    asked("create_topic", "PUT", "/topics/{topic}", {}, topic="t-new"),
    asked("describe_topic", "GET", "/topics/{topic}"),
    asked("configure_topic", "PATCH", "/topics/{topic}", {"messages_max": 1_000}),
    asked("delete_topic", "DELETE", "/topics/{topic}", topic="t-new"),
    asked("browse", "GET", "/topics/{topic}/partitions/{partition}/messages", partition="0"),
    asked("describe_topic", "GET", "/topics/{topic}/subscriptions"),
    asked("subscribe", "PUT", "/topics/{topic}/subscriptions/{subscription}", {}, subscription="pulling"),
    asked("describe_topic", "GET", "/topics/{topic}/subscriptions/{subscription}"),
    asked("unsubscribe", "DELETE", "/topics/{topic}/subscriptions/{subscription}", subscription="gone"),
    asked("seek", "POST", "/topics/{topic}/subscriptions/{subscription}/seek", {"at": "earliest"}),
    asked("describe_topic", "GET", "/topics/{topic}/subscriptions/{subscription}/dead-letters"),
    asked("redrive", "POST", "/topics/{topic}/subscriptions/{subscription}/dead-letters/redrive", {}),
    asked("exchanges", "GET", "/exchanges"),
    asked("declare_exchange", "PUT", "/exchanges/{exchange}", {}, exchange="t-other"),
    asked("exchanges", "GET", "/exchanges/{exchange}"),
    asked("bind", "POST", "/exchanges/{exchange}/bindings", {"topic": "t", "key": "b"}),
    asked("unbind", "DELETE", "/exchanges/{exchange}/bindings?topic=t&key=b"),
    asked("schema.list", "GET", "/schemas/{topic}"),
    asked("schema.register", "POST", "/schemas/{topic}", {"schema": "{}"}),
    asked("schema.check", "POST", "/schemas/{topic}/check", {"schema": "{}"}),
    asked("schema.configure", "PATCH", "/schemas/{topic}", {"validate": False}),
    asked("schema.show", "GET", "/schemas/{topic}/versions/{version}", version="latest"),
    asked("schema.remove", "DELETE", "/schemas/{topic}/versions/{version}", version="99"),
    asked("schema.remove", "DELETE", "/schemas/{topic}"),
    asked("webhook.create", "POST", WEBHOOK, {"url": "https://hooks.example.com/"}),
    asked("webhook.show", "GET", WEBHOOK),
    asked("webhook.remove", "DELETE", WEBHOOK),
    asked("webhook.pause", "POST", f"{WEBHOOK}/pause"),
    asked("webhook.resume", "POST", f"{WEBHOOK}/resume"),
    asked("webhook.rotate", "POST", f"{WEBHOOK}/rotate"),
]
OF_NO_TOPIC = {
    ("get", "/schemas"): "everyone may ask, and is told of what they may see",
    ("get", "/webhooks"): "the same",
    ("put", "/transactions/{transaction}"): "ids are of the principal's own domain: see `test_transactions`",
    ("get", "/transactions/{transaction}"): "the same",
}


def rules() -> dict[str, Rule]:
    lanes = {name: row.rule for name, row in {**COMMANDS, **administration()}.items()}
    return lanes | {name: row.rule for name, row in PULLING.items()}


async def is_allowed(node: HttpNode, what: Asked, domain: str) -> bool:
    base = str(node.http.base_url).replace("/default/", f"/{domain}")
    path = what.path.format(**what.values)
    async with node.http.stream(what.method, base + path, json=what.json) as answer:
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return True
        await answer.aread()
        assert answer.status_code < 500, answer.text
        if answer.status_code in REFUSED:
            return False
        if what.path == "/exchanges/{exchange}" and what.method == "GET":
            return answer.status_code == 200
        return not answer.content or answer.json() not in EMPTY


@pytest.mark.parametrize("who", PEOPLE)
async def test_the_verdict_on_every_request_is_that_of_the_table(who: str) -> None:
    person, guests, allowed = PEOPLE[who], Guests(), rules()
    settings = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=True)))
    async with http_node(authenticate=guests.authenticate, settings=settings) as node:
        for grant in (each for everyone in PEOPLE.values() for each in everyone.grants):
            await node.node.identity.grants.add(grant)
        async with in_process(node.node) as lane:
            await arrange(lane)
        guests.expected = person.principal(who)
        wrong = [
            (what.method, what.path, domain)
            for what in ASKED
            for domain in (OWN, FOREIGN)
            if await is_allowed(node, what, domain) != allowed[what.command](person, domain)
        ]
    assert wrong == []


def test_every_operation_of_the_api_has_a_row() -> None:
    prefix = "/api/v1/domains/{domain}"
    api = make_api(Watching(Watched(lambda: True, list, lambda: (b"", "text/plain")), metrics_public=True))
    there = {
        (method, path.removeprefix(prefix))
        for path, found in api.openapi()["paths"].items()
        if path.startswith(prefix)
        for method in found
    }
    assert there - set(OF_NO_TOPIC) == {(each.method.lower(), each.path.partition("?")[0]) for each in ASKED}


async def test_of_what_someone_may_not_see_nothing_is_told() -> None:
    guests = Guests()
    async with http_node(authenticate=guests.authenticate) as node:
        await node.well("POST", "/schemas/orders", json={"schema": "{}"})
        assert len((await node.well("GET", "/schemas"))["schemas"]) == 1
    async with http_node(authenticate=guests.authenticate) as node:
        async with in_process(node.node) as lane:
            await lane.administer("schema.register", topic="default/orders", schema="{}")
        guests.expected = PEOPLE["none"].principal("none")
        assert await node.well("GET", "/schemas") == {"schemas": []}
        assert await node.well("GET", "/webhooks") == {"webhooks": []}
