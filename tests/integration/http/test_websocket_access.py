"""Who comes in by a WebSocket, how they show who they are, and how they are shown out."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import websockets

from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.websocket import connection as bounds
from sealane.errors import InvalidArgument
from sealane.node import NodeSettings
from sealane.security.grants.grants import Grant
from sealane.security.settings import QuotaSettings, SecuritySettings
from tests.http_node import HttpNode, http_node
from tests.integration.http.raw_socket import opening, raw_socket
from tests.integration.http.socket_client import Refused, open_socket
from tests.integration.http.test_websocket_bounds import until
from tests.secure_node import SecureNode, secure_node


@pytest.fixture
async def secure(tmp_path: Path) -> AsyncIterator[SecureNode]:
    async with secure_node(tmp_path) as running:
        yield running


def over_tls(running: SecureNode, shown: Any = None, **options: Any) -> dict[str, Any]:
    return {"scheme": "wss", "ssl": running.context(shown), "server_hostname": "localhost", **options}


async def key_of(running: SecureNode, account: str = "shop") -> str:
    _, key = await running.node.identity.api_keys.create(account)
    return key


# --- showing who one is -----------------------------------------------------------------------------------------------


async def test_a_certificate_is_shown_by_the_connection(secure: SecureNode) -> None:
    anna = await secure.issue("anna")
    async with open_socket(secure.http, **over_tls(secure, anna), welcome=False) as socket:
        welcome = await socket.news("welcome")
        assert (welcome["principal"], welcome["domain"]) == ("anna", "default")
        await socket.publish("t", "hello")


async def test_an_api_key_is_shown_in_a_header(secure: SecureNode) -> None:
    shown = {"Authorization": f"Bearer {await key_of(secure)}"}
    async with open_socket(secure.http, **over_tls(secure), additional_headers=shown) as socket:
        await socket.publish("t", "hello")


async def test_a_browser_shows_its_token_in_the_first_message(secure: SecureNode) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        welcome = await socket.call("hello", token=await key_of(secure))
        assert (welcome["type"], welcome["principal"]) == ("welcome", "shop")
        await socket.publish("t", "hello")


async def test_what_is_said_right_behind_the_hello_is_heard(secure: SecureNode) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        await socket.say("hello", token=await key_of(secure))
        await socket.say("publish", call=7, topic="t", messages=[{"payload": "a"}])
        await socket.news("welcome")
        assert (await socket.news("published"))["call"] == 7


async def test_a_credential_that_is_wrong_is_refused_before_the_upgrade(secure: SecureNode) -> None:
    with pytest.raises(websockets.InvalidStatus) as refused:
        async with open_socket(
            secure.http, **over_tls(secure), additional_headers={"Authorization": "Bearer nobody's"}
        ):
            pass
    answer = refused.value.response
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert answer.headers["content-type"] == "application/problem+json"
    assert json.loads(answer.body or b"")["type"] == "urn:sealane:unauthenticated"
    assert b"nobody's" not in (answer.body or b"")


async def test_a_token_that_is_wrong_closes_the_connection(secure: SecureNode) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        with pytest.raises(Refused) as refused:
            await socket.call("hello", token="nobody's")
        assert refused.value.problem["status"] == 401
        assert (await socket.closed())[0] == 1008


@pytest.mark.parametrize(
    "said", [{"type": "ping"}, {"type": "hello"}, {"type": "hello", "token": 5}, {"type": "dance"}]
)
async def test_who_has_shown_nothing_can_only_say_hello(secure: SecureNode, said: dict[str, Any]) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        await socket.connection.send(json.dumps(said))
        assert (await socket.news("error"))["problem"]["status"] == 401
        assert (await socket.closed())[0] == 1008


async def test_who_has_shown_nothing_can_send_no_more_than_a_token_takes(secure: SecureNode) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        await socket.connection.send("x" * (bounds.HELLO_BYTES_MAX + 1))
        assert (await socket.closed())[0] == 1009


async def test_who_says_nothing_at_all_is_cut_off(secure: SecureNode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "HELLO_SECONDS_MAX", 0.01)
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        assert (await socket.closed())[0] == 1008


async def test_nothing_is_taken_from_the_query() -> None:
    async with http_node() as node:
        status, body = await opening(node.door, path="/api/v1/ws?token=secret")
    assert status == 400
    assert "secret" not in body


# --- being shown out --------------------------------------------------------------------------------------------------


async def test_a_certificate_that_is_revoked_ends_the_connection(secure: SecureNode) -> None:
    anna = await secure.issue("anna")
    async with open_socket(secure.http, **over_tls(secure, anna)) as socket:
        await socket.publish("t", "a")
        await socket.subscribe("t", credit=1)
        await socket.messages(1)
        await secure.node.identity.authorities.revoke("anna", "key-compromise")
        code, reason = await socket.closed()
        assert code == 1008
        assert "credential" in reason
    subscription = secure.node.topic("t").owners[0].core.subscription("s")
    await until(lambda: not subscription.leases.outstanding)
    await until(lambda: secure.node.entrances.connections_of("anna") == 0)


async def test_an_account_that_is_disabled_ends_the_connection(secure: SecureNode) -> None:
    async with open_socket(secure.http, **over_tls(secure), welcome=False) as socket:
        await socket.call("hello", token=await key_of(secure))
        await secure.node.identity.accounts.change("shop", disabled=True)
        assert (await socket.closed())[0] == 1008


async def test_a_grant_that_is_taken_away_closes_the_consumer_alone() -> None:
    grant = Grant("anna", "consume", "default/t")
    async with http_node(authenticate=None) as node:
        await node.node.identity.grants.add(grant)
        _, key = await node.node.identity.api_keys.create("anna", roles=())
        async with open_socket(node.door, additional_headers={"Authorization": f"Bearer {key}"}) as socket:
            consumer = await socket.subscribe("t", credit=1)
            with pytest.raises(Refused, match="may not publish"):
                await socket.publish("t", "a")
            await node.node.identity.grants.remove(grant)
            closed = await socket.news("closed")
            assert (closed["consumer"], closed["problem"]["status"]) == (consumer, 403)
            with pytest.raises(Refused, match="may not consume"):
                await socket.subscribe("t")


# --- being counted ----------------------------------------------------------------------------------------------------


async def test_a_websocket_counts_as_a_connection_until_it_ends() -> None:
    async with http_node(door=HttpDoorSettings(port=0, connections_max=1)) as node:
        entrances = node.node.entrances
        async with open_socket(node.door) as socket:
            assert node.door.connections == 1
            assert entrances.connections_from("127.0.0.1") == 1
            assert (await opening(node.door))[0] == 503
            await socket.call("ping")
        await until(lambda: node.door.connections == 0)
        assert entrances.connections_from("127.0.0.1") == 0
        assert len(entrances) == 0
        async with open_socket(node.door):
            pass


async def test_a_principal_has_only_so_many_websockets() -> None:
    quotas = QuotaSettings(connections_per_principal_max=1)
    settings = NodeSettings(security=SecuritySettings(quotas=quotas))
    async with http_node(settings=settings, authenticate=None) as node:
        _, key = await node.node.identity.api_keys.create("anna")
        shown = {"Authorization": f"Bearer {key}"}
        async with open_socket(node.door, additional_headers=shown):
            status, body = await opening(node.door, f"authorization: Bearer {key}\r\n")
            assert (status, json.loads(body)["type"]) == (429, "urn:sealane:too-many-connections")
        await until(lambda: len(node.node.entrances) == 0)
        async with open_socket(node.door, additional_headers=shown):
            pass


# --- pages, hosts and requests that are not as they should be ---------------------------------------------------------


@pytest.mark.parametrize(
    "origin", ["https://evil.example", "null", "http://127.0.0.1:1", "https://{own}", "http://[", ""]
)
async def test_pages_of_other_places_may_not_connect(origin: str) -> None:
    async with http_node() as node:
        status, body = await opening(node.door, f"origin: {origin.format(own=node.door.address)}\r\n")
    assert status == 403
    assert "doors.http.origins" in body


async def test_pages_of_the_node_itself_may_connect() -> None:
    async with http_node() as node, raw_socket(node.door, f"origin: http://{node.door.address}\r\n"):
        pass


async def test_pages_that_the_settings_name_may_connect() -> None:
    door = HttpDoorSettings(port=0, origins="https://shop.example, https://app.example:8443")
    async with http_node(door=door) as node:
        for origin in ("https://shop.example", "https://APP.example:8443"):
            async with raw_socket(node.door, f"origin: {origin}\r\n"):
                pass
        assert (await opening(node.door, "origin: https://shop.example:8443\r\n"))[0] == 403
        assert (await opening(node.door, "origin: https://shop.example\r\norigin: https://x.example\r\n"))[0] == 403


@pytest.mark.parametrize("origins", ["shop.example", "https://", "https://shop.example/page", "*", "https://a@b"])
def test_an_origin_that_no_browser_has_is_no_setting(origins: str) -> None:
    with pytest.raises(InvalidArgument, match=r"doors\.http\.origins"):
        HttpDoorSettings(origins=origins)


async def test_a_name_that_leads_here_by_a_trick_is_not_answered_without_authentication() -> None:
    async with http_node() as node:
        status, _ = await opening(node.door, "origin: http://evil.example\r\n", host="evil.example")
    assert status == 421


@pytest.mark.parametrize(
    ("path", "more", "status"),
    [
        ("/api/v1/other", "", 404),
        ("/", "", 404),
        ("/api/v1/ws", "sec-websocket-protocol: soap\r\n", 400),
        ("/api/v1/ws", "sec-websocket-version: 8\r\n", 400),
        ("/api/v1/ws", "sec-websocket-key: short\r\n", 400),
    ],
)
async def test_a_request_that_cannot_be_one_is_refused_with_a_problem(path: str, more: str, status: int) -> None:
    async with http_node() as node:
        found, body = await opening(node.door, more, path=path)
        assert found == status
        assert json.loads(body)["status"] == status
        await until(lambda: node.door.connections == 0)


async def test_a_head_that_is_too_large_is_not_upgraded() -> None:
    async with http_node(door=HttpDoorSettings(port=0, head_bytes_max=1_000)) as node:
        status, _ = await opening(node.door, f"x-long: {'x' * 1_000}\r\n")
        assert status == 431
        await until(lambda: node.door.connections == 0)


async def test_other_upgrades_are_not_taken_for_websockets(node: HttpNode) -> None:
    answer = await node.http.get("/topics", headers={"connection": "upgrade", "upgrade": "h2c"}, timeout=1)
    assert answer.status_code == 200
