"""Who makes a request: by the connection's certificate, an API key, a token, or a user's password."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from sealane.doors.authorization import credentials_of
from sealane.doors.http.settings import HttpDoorSettings
from sealane.errors import Unauthenticated
from sealane.security.grants.grants import Grant
from tests.secure_node import SecureNode, secure_node

DEADLINE_SECONDS = 30
KEY = "slk_" + "a" * 12 + "_" + "B" * 43


class Answer:
    def __init__(self, raw: bytes) -> None:
        head, _, self.body = raw.partition(b"\r\n\r\n")
        first, *lines = head.decode().split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in lines)}

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def get(running: SecureNode, path: str, tls: ssl.SSLContext | None = None, authorization: str = "") -> Answer:
    host, _, port = running.http.address.rpartition(":")
    shown = f"authorization: {authorization}\r\n" if authorization else ""
    async with asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=tls or running.context())
        writer.write(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n{shown}connection: close\r\n\r\n".encode())
        answer = Answer(await reader.read())
        writer.close()
        await writer.wait_closed()
    return answer


def basic(user: str, password: str) -> str:
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


@pytest.fixture
async def running(tmp_path: Path) -> AsyncIterator[SecureNode]:
    async with secure_node(tmp_path) as started:
        yield started


async def test_whether_the_node_is_there_is_told_to_everyone(running: SecureNode) -> None:
    assert (await get(running, "/healthz")).json == {"status": "alive"}
    assert (await get(running, "/ready")).json == {"status": "ready"}


async def test_metrics_are_refused_to_whoever_shows_nothing(running: SecureNode) -> None:
    answer = await get(running, "/metrics")

    assert answer.status == 401
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["www-authenticate"].startswith("Bearer ")
    assert "Basic" in answer.headers["www-authenticate"]


async def test_metrics_are_given_to_an_admins_certificate_and_refused_to_a_members(running: SecureNode) -> None:
    admin = await running.issue("root", roles={"admin"})
    member = await running.issue("anna")

    assert (await get(running, "/metrics", running.context(admin))).body == b"sealane_up 1\n"
    refused = await get(running, "/metrics", running.context(member))
    assert refused.status == 403
    assert "anna" in refused.json["detail"]


async def test_a_grant_is_enough_for_metrics(running: SecureNode) -> None:
    prometheus = running.context(await running.issue("prometheus", roles=()))
    assert (await get(running, "/metrics", prometheus)).status == 403
    await running.node.identity.grants.add(Grant("prometheus", "consume", "_system/metrics"))

    assert (await get(running, "/metrics", prometheus)).status == 200


async def test_an_api_key_is_a_bearers(running: SecureNode) -> None:
    _, key = await running.node.identity.api_keys.create("root", roles={"admin"})

    assert (await get(running, "/metrics", authorization=f"Bearer {key}")).status == 200
    wrong = key[:-2] + ("AA" if not key.endswith("AA") else "BB")
    refused = await get(running, "/metrics", authorization=f"Bearer {wrong}")
    assert refused.status == 401
    assert wrong.encode() not in refused.body


async def test_refused_a_revoked_certificate_on_a_connection_that_stays_open(running: SecureNode) -> None:
    tls = running.context(await running.issue("root", roles={"admin"}))
    host, _, port = running.http.address.rpartition(":")
    ask = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n"
    async with asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
        writer.write(ask)
        assert (await reader.readuntil(b"up 1\n")).startswith(b"HTTP/1.1 200 ")
        await running.node.identity.authorities.revoke("root", "key-compromise")
        writer.write(ask)
        assert (await reader.readuntil(b"}")).startswith(b"HTTP/1.1 401 ")
        writer.close()
        await writer.wait_closed()


async def test_refused_a_password_that_nobody_has(running: SecureNode) -> None:
    answer = await get(running, "/metrics", authorization=basic("anna", "correct horse"))

    assert answer.status == 401
    assert b"horse" not in answer.body


async def test_refused_a_token_that_nobody_issued(running: SecureNode) -> None:
    assert (await get(running, "/metrics", authorization="Bearer e30.e30.e30")).status == 401


async def test_metrics_may_be_made_public(tmp_path: Path) -> None:
    async with secure_node(tmp_path, http=HttpDoorSettings(port=0, metrics_public=True)) as running:
        assert (await get(running, "/metrics")).status == 200


async def test_plain_text_is_told_that_this_door_speaks_tls(running: SecureNode) -> None:
    host, _, port = running.http.address.rpartition(":")
    async with asyncio.timeout(DEADLINE_SECONDS):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /ready HTTP/1.1\r\nhost: localhost\r\n\r\n")
        answer = Answer(await reader.read())
        writer.close()
        await writer.wait_closed()

    assert answer.status == 400
    assert "https://" in answer.json["detail"]


def test_what_a_request_can_show() -> None:
    assert credentials_of(None) is None
    assert credentials_of("Bearer e30.e30.e30") == {"token": "e30.e30.e30"}
    assert credentials_of("bearer e30.e30.e30") == {"token": "e30.e30.e30"}
    assert credentials_of(basic("anna", "a:b")) == {"user": "anna", "password": "a:b"}
    assert credentials_of(f"Bearer {KEY}") == {"key": KEY}


@pytest.mark.parametrize("shown", ["Digest abc", "Basic", "Basic !!!", "Basic YW5uYQ==", "Basic /w==", "Basic \xff"])
def test_refused_what_cannot_be_read_and_not_repeated(shown: str) -> None:
    with pytest.raises(Unauthenticated) as refused:
        credentials_of(shown)
    assert shown.partition(" ")[2] not in str(refused.value) or not shown.partition(" ")[2]
