"""Messages by HTTPS: under a client certificate, an API key or a password, and within what these may do."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from sealane.client.embedded import in_process
from tests.secure_node import SecureNode, secure_node

MESSAGES = "/topics/orders/messages"


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[SecureNode]:
    async with secure_node(tmp_path) as started:
        yield started


@asynccontextmanager
async def client(
    running: SecureNode, tls: ssl.SSLContext | None = None, domain: str = "shop", **options: Any
) -> AsyncIterator[httpx.AsyncClient]:
    base = f"https://{running.http.address}/api/v1/domains/{domain}"
    async with httpx.AsyncClient(
        base_url=base, verify=tls or running.context(), trust_env=False, timeout=60, **options
    ) as opened:
        yield opened


def bearer(key: str) -> dict[str, Any]:
    return {"headers": {"authorization": f"Bearer {key}"}}


async def key_of(running: SecureNode, account: str, roles: list[str]) -> str:
    async with in_process(running.node) as admin:
        made = await admin.administer("key.create", account=account, domain="shop", roles=roles)
    key: str = made["key"]
    return key


async def test_an_api_key_publishes_and_pulls_in_its_own_domain(running: SecureNode) -> None:
    key = await key_of(running, "robot", ["member"])
    async with client(running, **bearer(key)) as http:
        assert (await http.post(MESSAGES, json={"payload": "hello"})).status_code == 201
        pulled = (await http.get("/topics/orders/subscriptions/s/messages")).json()
        assert [message["payload"] for message in pulled["messages"]] == ["hello"]
        acked = await http.post(f"/topics/orders/subscriptions/s/leases/{pulled['lease']}/ack")
        assert acked.status_code == 204
    async with client(running, domain="bank", **bearer(key)) as http:
        refused = await http.post(MESSAGES, json={"payload": "hello"})
        assert refused.status_code == 403
        assert refused.json()["type"] == "urn:sealane:forbidden"


async def test_a_client_certificate_does_too(running: SecureNode) -> None:
    shown = await running.issue("app.shop", roles=("member",))
    async with client(running, running.context(shown)) as http:
        assert (await http.post(MESSAGES, json={"payload": "hello"})).status_code == 201
        await running.node.identity.authorities.revoke(shown.serial)
        assert (await http.post(MESSAGES, json={"payload": "hello"})).status_code == 401


async def test_a_lease_is_of_no_use_to_who_may_not_consume(running: SecureNode) -> None:
    member, producer = await key_of(running, "robot", ["member"]), await key_of(running, "feeder", ["producer"])
    async with client(running, **bearer(member)) as http, client(running, **bearer(producer)) as other:
        await other.post(MESSAGES, json={"payload": "hello"})
        lease = (await http.get("/topics/orders/subscriptions/s/messages")).json()["lease"]
        assert (await other.post(f"/topics/orders/subscriptions/s/leases/{lease}/ack")).status_code == 403


@pytest.mark.parametrize(
    "shown", [{}, bearer("slk_aaaaaaaaaaaa_" + "B" * 43), bearer("nonsense"), {"auth": ("a", "b")}]
)
async def test_whoever_shows_nothing_that_is_known_is_sent_away(running: SecureNode, shown: dict[str, Any]) -> None:
    async with client(running, **shown) as http:
        for answer in (await http.post(MESSAGES, json={"payload": "x"}), await http.get("/topics")):
            assert answer.status_code == 401
            assert "Bearer" in answer.headers["www-authenticate"]
    assert not running.node.topics


async def test_one_may_ask_under_any_name_where_one_has_to_say_who_one_is(running: SecureNode) -> None:
    key = await key_of(running, "robot", ["member"])
    async with client(running, **bearer(key)) as http:
        assert (await http.get("/topics", headers={"host": "broker.example"})).status_code == 200
