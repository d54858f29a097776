"""The grpc door with TLS: who is let in by what, who is turned away, who is shown out when their credential ends."""

from __future__ import annotations

import asyncio
import base64
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509

from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.node.session import Session
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN
from tests.grpc_node import SecureGrpcNode, client, secure_grpc_node
from tests.integration.grpc.conftest import DEADLINE_SECONDS, messages, pull, refusal, sent, wish
from tests.integration.native.conftest import eventually

CUT_SECONDS_MAX = 5.0
"""Within which streams of a revoked credential are ended."""
PASSWORD = "correct horse battery staple"


@pytest.fixture
async def running(tmp_path: Path, no_stray_errors: None) -> AsyncIterator[SecureGrpcNode]:
    async with secure_grpc_node(tmp_path) as started:
        yield started


def bearer(key: str) -> list[tuple[str, str]]:
    return [("authorization", f"Bearer {key}")]


async def administer(running: SecureGrpcNode, command: str, **arguments: Any) -> Any:
    return await Session(running.node, ADMIN).administer(command, arguments)


async def new_key(running: SecureGrpcNode, **fields: Any) -> tuple[str, str]:
    """The id of an API key, and what its holder shows."""
    made = await administer(running, "key.create", **{"account": "robot", "roles": ["member"], **fields})
    return made["id"], made["key"]


# --- coming in --------------------------------------------------------------------------------------------------------


async def test_a_certificate_says_who_someone_is(running: SecureGrpcNode) -> None:
    anna = await running.secure.issue("anna.example.com")
    async with client(running.address, running.credentials(anna)) as stub:
        await stub.SendMessage(sent(b"1"))
        assert "example.com/orders" in running.node.topics
        (message,) = messages(await pull(stub))
        assert message.producer_id == "anna.example.com"


async def test_an_api_key_is_enough_without_a_certificate(running: SecureGrpcNode) -> None:
    _, key = await new_key(running)
    async with client(running.address, running.credentials()) as stub:
        await stub.SendMessage(sent(b"1"), metadata=bearer(key))
        call = stub.PullMessages(wish(), metadata=bearer(key))
        assert [message.producer_id async for answer in call for message in answer.messages] == ["robot"]


async def test_a_user_comes_in_by_a_password_and_by_the_token_that_it_gets(running: SecureGrpcNode) -> None:
    await administer(running, "user.create", name="maria", password=PASSWORD, roles=["member"])
    basic = base64.b64encode(f"maria:{PASSWORD}".encode()).decode()
    async with client(running.address, running.credentials()) as stub:
        await stub.SendMessage(sent(b"1"), metadata=[("authorization", f"Basic {basic}")])
        wrong = base64.b64encode(b"maria:wrong").decode()
        error = await refusal(stub.SendMessage(sent(b"2"), metadata=[("authorization", f"Basic {wrong}")]))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        maria = await running.node.identity.authentication.authenticate(
            Introduction({"user": "maria", "password": PASSWORD})
        )
        issued = await Session(running.node, maria).administer("token.issue", {})
        await stub.SendMessage(sent(b"3"), metadata=bearer(issued["token"]))


async def test_whoever_shows_nothing_may_ask_for_the_health_and_no_more(running: SecureGrpcNode) -> None:
    async with client(running.address, running.credentials()) as stub:
        assert (await stub.GetNodeHealth(pb.HealthRequest())).status == pb.HealthResponse.SERVING
        for call in (stub.SendMessage(sent(b"1")), stub.PullMessages(wish())):
            assert (await refusal(call)).code() is grpc.StatusCode.UNAUTHENTICATED
    assert running.node.measures.refusals["Unauthenticated"] == 2


@pytest.mark.parametrize("shown", ["Bearer nonsense", "Basic %%%", "Digest x", "Bearer slk_0_0", ""])
async def test_a_credential_that_cannot_be_is_refused(running: SecureGrpcNode, shown: str) -> None:
    async with client(running.address, running.credentials()) as stub:
        error = await refusal(stub.SendMessage(sent(b"1"), metadata=[("authorization", shown)]))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED
        assert shown not in error.details() or not shown


# --- TLS --------------------------------------------------------------------------------------------------------------


def shaken(running: SecureGrpcNode, **versions: ssl.TLSVersion) -> ssl.SSLSocket:
    context = running.secure.context()
    context.set_alpn_protocols(["h2"])
    for name, version in versions.items():
        setattr(context, name, version)
    host, _, port = running.door.address.rpartition(":")
    plain = socket.create_connection((host, int(port)), timeout=DEADLINE_SECONDS)
    try:
        return context.wrap_socket(plain, server_hostname="localhost")
    except BaseException:
        plain.close()
        raise


async def test_it_speaks_tls_1_3_and_nothing_older(running: SecureGrpcNode) -> None:
    with await asyncio.to_thread(shaken, running) as spoken:
        assert (spoken.version(), spoken.selected_alpn_protocol()) == ("TLSv1.3", "h2")
        await eventually(lambda: running.door.connections == 1)
    await eventually(lambda: running.door.connections == 0)
    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(shaken, running, maximum_version=ssl.TLSVersion.TLSv1_2)
    assert running.node.measures.handshakes_refused["grpc"] == 1


async def test_plain_text_is_told_that_this_is_tls(running: SecureGrpcNode) -> None:
    async with client(running.address) as stub:
        assert (await refusal(stub.SendMessage(sent(b"1")))).code() is grpc.StatusCode.UNAVAILABLE
    host, _, port = running.door.address.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
    assert b"this door speaks TLS" in await asyncio.wait_for(reader.read(), DEADLINE_SECONDS)
    writer.close()


async def test_a_certificate_of_a_stranger_is_refused(running: SecureGrpcNode, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    async with secure_grpc_node(other) as elsewhere:
        stranger = await elsewhere.secure.issue("anna.example.com")
        trusted = running.node.identity.authorities.trusted().encode()
        assert stranger.key is not None
        shown = grpc.ssl_channel_credentials(trusted, stranger.key.encode(), stranger.certificate.encode())
        async with client(running.address, shown) as stub:
            assert (await refusal(stub.SendMessage(sent(b"1")))).code() is grpc.StatusCode.UNAVAILABLE


def serial_shown(running: SecureGrpcNode) -> int:
    with shaken(running) as spoken:
        der = spoken.getpeercert(binary_form=True)
        assert der is not None
        return x509.load_der_x509_certificate(der).serial_number


async def test_a_new_certificate_is_shown_without_a_restart_and_disturbs_nobody(running: SecureGrpcNode) -> None:
    anna = await running.secure.issue("anna.example.com")
    async with client(running.address, running.credentials(anna)) as stub:
        await stub.SendMessage(sent(b"1"))
        call = stub.PullMessages(wish(follow=True))
        assert len((await call.read()).messages) == 1
        before = await asyncio.to_thread(serial_shown, running)
        await running.secure.own._make_server()
        running.secure.own._show_newest()
        assert await asyncio.to_thread(serial_shown, running) != before
        await stub.SendMessage(sent(b"2"))
        assert len((await call.read()).messages) == 1
        call.cancel()
        async with client(running.address, running.credentials(anna)) as newcomer:
            await newcomer.SendMessage(sent(b"3"))


# --- when it is over --------------------------------------------------------------------------------------------------


async def test_a_revoked_certificate_is_refused_at_the_next_call_and_ends_streams(running: SecureGrpcNode) -> None:
    anna = await running.secure.issue("anna.example.com")
    async with client(running.address, running.credentials(anna)) as stub:
        await stub.SendMessage(sent(b"1"))
        pulling, sending = stub.PullMessages(wish(follow=True)), stub.SendMessages()
        await pulling.read()
        await sending.write(sent(b"2"))
        await sending.read()
        await pulling.read()
        await running.node.identity.authorities.revoke("anna.example.com", "key-compromise")
        async with asyncio.timeout(CUT_SECONDS_MAX):
            assert await pulling.code() is grpc.StatusCode.UNAUTHENTICATED
            assert await sending.code() is grpc.StatusCode.UNAUTHENTICATED
        assert (await refusal(stub.SendMessage(sent(b"3")))).code() is grpc.StatusCode.UNAUTHENTICATED
    assert len(running.node.entrances) == 0


async def test_a_revoked_key_is_refused_at_the_next_call_and_ends_streams(running: SecureGrpcNode) -> None:
    identity, key = await new_key(running)
    async with client(running.address, running.credentials()) as stub:
        await stub.SendMessage(sent(b"1"), metadata=bearer(key))
        pulling = stub.PullBatches(wish(1, follow=True), metadata=bearer(key))
        await pulling.read()
        await administer(running, "key.revoke", id=identity)
        async with asyncio.timeout(CUT_SECONDS_MAX):
            assert await pulling.code() is grpc.StatusCode.UNAUTHENTICATED
        error = await refusal(stub.SendMessage(sent(b"2"), metadata=bearer(key)))
        assert error.code() is grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("waiting", ["for messages", "for room"])
async def test_a_grant_that_is_taken_away_ends_the_stream_that_it_let_begin(
    running: SecureGrpcNode, waiting: str
) -> None:
    _, key = await new_key(running, account="robot.shop", roles=[])
    await administer(running, "grant.add", subject="robot.shop", action="consume", pattern="default/orders")
    admin = await running.secure.issue("root", roles={"admin"})
    async with (
        client(running.address, running.credentials(admin)) as owner,
        client(running.address, running.credentials()) as stub,
    ):
        await owner.SendMessage(sent(b"1", "default/orders"))
        limit = 1 if waiting == "for room" else 5
        call = stub.PullMessages(wish(limit, follow=True, destination="default/orders"), metadata=bearer(key))
        first = await call.read()
        await administer(running, "grant.remove", subject="robot.shop", action="consume", pattern="default/orders")
        if waiting == "for room":
            request = pb.AckMessageRequest(destination="default/orders", subscription="billing", lease=first.lease)
            await owner.AckMessage(request)
        async with asyncio.timeout(DEADLINE_SECONDS):
            assert await call.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_one_connection_carries_calls_of_several_keys_each_for_itself(running: SecureGrpcNode) -> None:
    _, producer = await new_key(running, account="producer", roles=["producer"])
    _, consumer = await new_key(running, account="consumer", roles=["consumer"])
    async with client(running.address, running.credentials()) as stub:
        await stub.SendMessage(sent(b"1"), metadata=bearer(producer))
        error = await refusal(stub.SendMessage(sent(b"2"), metadata=bearer(consumer)))
        assert error.code() is grpc.StatusCode.PERMISSION_DENIED
        answers = [answer async for answer in stub.PullMessages(wish(), metadata=bearer(consumer))]
        assert [message.producer_id for message in messages(answers)] == ["producer"]
        assert running.door.connections == 1
