"""Secrets and payloads appear in no log, error, metric, audit entry or `repr`: canaries are planted in all that is
secret, everything that can be done is done and refused, and then all that was said is searched.
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import struct
import subprocess
import sys
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.client.profiles import Profile, read_profile
from sealane.client.remote.connecting import RemoteLane
from sealane.delivery.config import Retry
from sealane.errors import SealaneError
from sealane.security.introductions import Introduction
from sealane.testing.node_process import NodeProcess
from sealane.wire.faults import fault_of
from tests.integration.canaries import Aviary

DEADLINE_SECONDS = 120.0
GARBAGE_SECONDS = 1.0
"""How long an answer to garbage is listened for: to half of something there may be none."""
CONTROL = "controlsubscription"
"""A name that is no secret, and must be found: so the search is known to look at the right things."""
CRASHING_PATH = Path(__file__).parent / "crashing"

PLACES = ("log", "client's log", "metrics", "audit", "errors", "reprs", "status", "commands")


class Said:
    """All that was said, by where."""

    def __init__(self) -> None:
        self.texts: dict[str, list[bytes]] = {place: [] for place in PLACES}

    def hear(self, place: str, *texts: object) -> None:
        self.texts[place] += [text if isinstance(text, bytes) else str(text).encode() for text in texts]

    def all_of(self, place: str) -> bytes:
        return b"\n".join(self.texts[place])

    def hear_error(self, error: BaseException) -> None:
        self.hear("errors", error, repr(error), vars(error))
        if isinstance(error, SealaneError):
            self.hear("errors", fault_of(error))


class Hearing(logging.Handler):
    """What the client says in its own process."""

    def __init__(self, said: Said) -> None:
        super().__init__(logging.DEBUG)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        self._said.hear("client's log", self.format(record), vars(record))


class Scenarios:
    """What users of a secure node do, and are refused."""

    def __init__(self, node: NodeProcess, aviary: Aviary, said: Said) -> None:
        self.node = node
        self.aviary = aviary
        self.said = said
        self.payload = aviary.plant("payload").encode()
        self.key = aviary.plant("key").encode()
        self.header = aviary.plant("header")
        self.reason = aviary.plant("reason")
        self.password = aviary.plant("password")
        self.wrong = aviary.plant("wrongpassword")
        self.token = aviary.plant("token")
        key_file = node.data / "master.key"
        aviary.watch("master key", key_file.read_bytes().strip().splitlines()[-1])
        profile = read_profile(node.profile)
        assert profile.key is not None
        self.watch_pem("admin's private key", profile.key)

    def watch_pem(self, kind: str, pem: str) -> None:
        """By a line from its middle: the first ones of all keys of a kind are the same."""
        lines = pem.strip().splitlines()
        self.aviary.watch(kind, lines[len(lines) // 2].encode())

    async def refused(self, work: Awaitable[object]) -> None:
        with pytest.raises((SealaneError, TypeError, ValueError)) as caught:
            await work
        self.said.hear_error(caught.value)

    async def cannot_come_in(self, **credentials: Any) -> None:
        with pytest.raises(SealaneError) as caught:
            await self._come_in(**credentials)
        self.said.hear_error(caught.value)

    async def _come_in(self, **credentials: Any) -> None:
        async with self.lane(**credentials):
            pass

    def lane(self, **credentials: Any) -> RemoteLane:
        ca = read_profile(self.node.profile).ca
        connecting = sealane.connect(self.node.url, ca=ca, connect_timeout=10, **credentials)
        self.said.hear("reprs", repr(connecting))
        return connecting

    async def run(self) -> None:
        async with asyncio.timeout(DEADLINE_SECONDS), sealane.connect(profile=self.node.profile) as admin:
            await self.identities(admin)
            await self.messages(admin)
            await self.refusals(admin)
            await self.crashes(admin)
            for door in ("native", "http"):
                await self.garbage(door)
            self.said.hear("status", await admin.status(), repr(admin))
            audited = await admin.administer("audit.read")
            self.said.hear("audit", audited)
            await self.refused(admin.administer("no.such", secret=self.password))
        self.metrics()

    async def identities(self, admin: sealane.Lane) -> None:
        await admin.administer("user.create", name="anna", password=self.password, domain="shop", roles=["member"])
        await self.refused(admin.administer("user.create", name="anna", password=self.password))
        await self.refused(admin.administer("user.create", name="../anna", password=self.password))
        await self.refused(admin.administer("user.create", name="bob", pasword=self.password))
        await self.refused(admin.administer("user.create", name="bob", password=[self.password]))
        await self.refused(admin.administer("user.password", name="nobody", password=self.password))
        made = await admin.administer("key.create", account="robot", domain="shop", roles=["member"])
        secret: str = made["key"]
        self.aviary.watch("API key", secret[-28:-4].encode())  # So that a changed one is known again too.
        issued = await admin.administer("ca.issue", name="client001.shop")
        self.watch_pem("issued private key", issued["key"])

        async with self.lane(user="anna", password=self.password) as anna:
            token = await anna.administer("token.issue")
            self.aviary.watch("issued token", token["token"][-28:-4].encode())
            await self._come_in(token=token["token"])
            await self.refused(
                anna.administer("user.password", name="anna", current=self.wrong, password=self.password)
            )
        async with self.lane(key=secret) as robot:
            await robot.publish("signed", self.payload)
        await self.cannot_come_in(user="anna", password=self.wrong)
        await self.cannot_come_in(user=self.wrong, password=self.password)
        await self.cannot_come_in(token=self.token)
        await self.cannot_come_in(token=token["token"][:-4] + "AAAA")
        await self.cannot_come_in(key=secret[:-4] + "AAAA")
        await self.cannot_come_in()
        shown = Introduction({"user": "anna", "password": self.password, "token": self.token}, self.payload)
        self.said.hear("reprs", repr(shown), shown)
        profile = Profile(self.node.url, key=issued["key"], api_key=secret, token=self.token)
        self.said.hear("reprs", repr(profile), profile)

    async def messages(self, admin: sealane.Lane) -> None:
        told = {"key": self.key, "headers": {"secret": self.header}}
        await admin.publish("orders", self.payload, **told)  # type: ignore[arg-type]
        retry = Retry("fixed", 0.01, 0.01, attempts_max=1)
        async for message in admin.consume("orders", subscription=CONTROL, retry=retry):
            self.said.hear("reprs", repr(message), message)
            await message.nack(reason=self.reason, confirm=True)
            break
        async for batch in admin.consume_batches(f"orders.{CONTROL}.dead", subscription=CONTROL):
            self.said.hear("reprs", repr(batch), batch)
            await batch.ack(confirm=True)
            break
        await admin.redrive("orders", CONTROL)
        async with admin.transaction("t-1") as transaction:
            self.said.hear("reprs", repr(transaction))
            await transaction.publish("orders", self.payload)
        async with admin.producer("orders") as producer:
            self.said.hear("reprs", repr(producer))
            await producer.send(self.payload, key=self.key, headers={"secret": self.header})
        async for message in admin.consume(
            "orders", subscription="acking", filter=f"headers['secret'] = '{self.header}'"
        ):
            await message.ack(confirm=True)
            break

    async def refusals(self, admin: sealane.Lane) -> None:
        large = self.payload * 40_000
        await self.refused(admin.publish("orders", large))
        await self.refused(admin.publish_many("orders", [large]))
        await self.refused(admin.publish("orders", self.payload.decode()))  # type: ignore[arg-type]
        await self.refused(admin.publish("orders", self.payload, key=self.key * 100))
        await self.refused(admin.publish("orders", self.payload, headers={"secret": self.header * 200}))
        await self.refused(admin.publish("orders", self.payload, headers={"secret": [self.header]}))  # type: ignore[dict-item]
        await self.refused(admin.publish("orders", self.payload, priority=11))
        await self.refused(admin.publish("or/de/rs", self.payload))
        await self.refused(admin.publish("_system/audit", self.payload))
        await admin.create_topic("full", messages_max=1)
        await admin.publish("full", self.payload)
        async for _ in admin.consume("full", subscription=CONTROL):
            await self.refused(admin.publish("full", self.payload))
            break
        async with self.lane(user="anna", password=self.password) as anna:
            await self.refused(anna.publish("other/orders", self.payload))
            await self.refused(anna.administer("user.create", name="eve", password=self.password))
        await admin.administer("quota.set", scope="principal", name="anna", messages_per_second=1)
        async with self.lane(user="anna", password=self.password, wait_when_limited=False) as anna:
            await anna.publish_many("quick", [self.payload] * 100)
            await self.refused(anna.publish("quick", self.payload))

    async def crashes(self, admin: sealane.Lane) -> None:
        await admin.create_topic("crashing")
        await self.refused(admin.publish("crashing", self.payload, key=self.key, headers={"secret": self.header}))

    async def garbage(self, door: str) -> None:
        """Secrets where no client would put them: without TLS, in no frame, in a frame, in a head."""
        host, _, port = self.node.doors[door].rpartition(":")
        frame = struct.pack("<II", len(self.payload) + 8, len(self.payload)) + self.payload
        shown = f"connection: close\r\nauthorization: Bearer {self.token}"
        head = f"GET /nothing?password={self.password} HTTP/1.1\r\nhost: localhost\r\n{shown}\r\n\r\n".encode()
        for tls in (None, self.context()):
            for sent in (self.payload, frame, head):
                reader, writer = await asyncio.open_connection(host, int(port), ssl=tls)
                writer.write(sent)
                is_answered = door == "http" and tls is not None and sent is head
                with suppress(ConnectionError, TimeoutError):
                    async with asyncio.timeout(DEADLINE_SECONDS if is_answered else GARBAGE_SECONDS):
                        self.said.hear("errors", await reader.read())
                writer.transport.abort()

    def context(self) -> ssl.SSLContext:
        """As the admin."""
        profile = read_profile(self.node.profile)
        assert profile.certificate is not None
        assert profile.key is not None
        chain = self.node.data.with_name("admin.pem")
        chain.touch(0o600)
        chain.write_text(profile.certificate + profile.key)
        context = ssl.create_default_context(cadata=profile.ca)
        context.load_cert_chain(chain)
        return context

    def metrics(self) -> None:
        address = f"https://{self.node.doors['http']}/metrics"
        with urllib.request.urlopen(address, context=self.context()) as answer:
            self.said.hear("metrics", answer.read())

    # --- the command line ---------------------------------------------------------------------------------------------

    def commands(self) -> None:
        large = self.payload * 40_000
        for arguments, given, code in (
            (("--help",), b"", 0),
            (("publish", "--help"), b"", 0),
            (("publish", "orders", "-"), large, 1),
            (("publish", "orders", "--jsonl"), b'{"payload": "' + self.payload + b'", "priority": 77}', 1),
            (("publish", "orders", "--jsonl"), b"{" + self.payload, 1),
            (("user", "create", "anna"), self.password.encode(), 1),
            (("user", "create", "bad/name"), self.password.encode(), 2),
            (("subscription", "show", "orders", CONTROL), b"", 0),
            (("status", "--json"), b"", 0),
            (("top", "--once"), b"", 0),
            (("config", "show"), b"", 0),
            (("audit", "show", "--json"), b"", 0),
            (("quota", "list"), b"", 0),
            (("key", "list"), b"", 0),
            (("user", "list"), b"", 0),
            (("ca", "list"), b"", 0),
        ):
            done = subprocess.run(
                [sys.executable, "-m", "sealane", *arguments],
                input=given,
                env={**os.environ, "SEALANE_DATA": str(self.node.data), "NO_COLOR": "1"},
                capture_output=True,
                timeout=DEADLINE_SECONDS,
                check=False,
            )
            assert done.returncode == code, (arguments, done.stderr)
            self.said.hear("commands", done.stdout, done.stderr)


@contextmanager
def heard_clients(said: Said) -> Iterator[None]:
    log, hearing = logging.getLogger("sealane"), Hearing(said)
    level = log.level
    log.addHandler(hearing)
    log.setLevel(logging.DEBUG)
    try:
        yield
    finally:
        log.setLevel(level)
        log.removeHandler(hearing)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> tuple[Aviary, Said]:
    directory = tmp_path_factory.mktemp("node")
    aviary, said = Aviary(), Said()
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv(
            "PYTHONPATH", os.pathsep.join([str(CRASHING_PATH), *filter(None, [os.environ.get("PYTHONPATH")])])
        )
        node = NodeProcess.secure(directory / "data", {"log.level": "debug", "log.format": "json"})
        with node:
            patched.undo()
            scenarios = Scenarios(node, aviary, said)
            with heard_clients(said):
                asyncio.run(scenarios.run())
            scenarios.commands()
    said.hear("log", node.log_file.read_bytes())
    return aviary, said


@pytest.mark.parametrize("place", PLACES)
def test_no_secret_is_told(run: tuple[Aviary, Said], place: str) -> None:
    aviary, said = run
    assert aviary.found_in(said.all_of(place)) == []


@pytest.mark.parametrize(
    ("place", "control"),
    [
        ("log", CONTROL),
        ("log", "planted: 1 messages in <Batch of 1 messages"),
        ("client's log", "the node refuses this client"),
        ("metrics", f'subscription="{CONTROL}"'),
        ("audit", "anna"),
        ("errors", "payload_bytes_max"),
        ("errors", "HTTP/1.1 404"),
        ("reprs", "Introduction("),
        ("status", "default/orders"),
        ("commands", CONTROL),
    ],
)
def test_what_is_no_secret_is_found_where_it_was_told(run: tuple[Aviary, Said], place: str, control: str) -> None:
    _, said = run
    assert control.encode() in said.all_of(place)


def test_all_that_is_secret_was_looked_for(run: tuple[Aviary, Said]) -> None:
    aviary, _ = run
    assert aviary.kinds >= {
        "payload", "key", "header", "reason", "password", "wrongpassword", "token", "issued token",
        "API key", "master key", "admin's private key", "issued private key",
    }  # fmt: skip


def by_itself(secret: bytes) -> bytes:
    return secret


def in_hex(secret: bytes) -> bytes:
    return secret.hex().encode()


def in_base64(secret: bytes) -> bytes:
    return base64.b64encode(b"before" + secret + b"behind")


@pytest.mark.parametrize("written", [by_itself, in_hex, in_base64])
@pytest.mark.parametrize("around", [0, 1, 2])
def test_a_secret_that_was_told_would_be_found(written: Callable[[bytes], bytes], around: int) -> None:
    aviary = Aviary()
    secret = aviary.plant("payload").encode()
    assert aviary.found_in(b'{"event": "' + written(b"x" * around + secret) + b'"}') == ["payload"]
    assert aviary.found_in(b"nothing of it") == []
