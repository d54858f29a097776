"""The audit log of a node: what is in it, in which order, at which cost, and what keeps it whole."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

import sealane
from sealane.client.embedded import in_process
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageFailed, StorageFull, Unauthenticated
from sealane.node import Node, NodeSettings
from sealane.node import auditing as auditing_module
from sealane.node.administration import COMMANDS
from sealane.node.audit_folding import Origin
from sealane.node.audit_log import AUDIT_LOG
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.node.surroundings import Surroundings
from sealane.security.audit.chain import Finding
from sealane.security.audit.entries import Entry
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal
from sealane.security.settings import AuditSettings, SecuritySettings
from tests.unit.node.running_node import Clock, until

ON = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=True, retention_seconds=3_600)))
OFF = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=False)))


@asynccontextmanager
async def opened(
    engine: MemoryEngine | None = None, settings: NodeSettings | None = ON, clock: Clock | None = None
) -> AsyncIterator[Node]:
    clock = clock or Clock()
    node = await Node.open(engine or MemoryEngine(clock), Surroundings(clock, os.urandom), settings)
    yield node
    await node.close()


async def entries_of(node: Node) -> list[Entry]:
    return [entry async for entry in node.audit.log.read(0) if isinstance(entry, Entry)]


async def findings_of(node: Node) -> list[Finding]:
    return (await node.audit.log.verify(lambda done, total: None))[1]


async def test_a_change_is_in_the_log_when_it_is_answered() -> None:
    async with opened() as node:
        session = Session(node, Principal("anna", "shop", frozenset({"manager"})), Origin("10.0.0.1", "native"))
        await session.create_topic("orders", {"partitions": 2})
        (entry,) = await entries_of(node)
    assert (entry.event, entry.outcome, entry.principal) == ("topic.create", "ok", "anna")
    assert (entry.address, entry.door, entry.resource) == ("10.0.0.1", "native", "shop/orders")
    assert entry.details == {"partitions": 2}


async def test_every_kind_of_change_leaves_its_entry() -> None:
    async with opened() as node, in_process(node) as lane:
        await lane.publish("made-by-use", b"1")
        await lane.create_topic("t")
        await lane.create_topic("t")  # It was there: nothing has changed.
        await lane.configure_topic("t", messages_max=10)
        await lane.create_topic("t.s.dead")
        async for _ in lane.consume("made-by-use", "s"):
            break
        await lane.seek("made-by-use", "s", "earliest")
        await lane.unsubscribe("made-by-use", "s")
        await lane.declare_exchange("e")
        await lane.bind("e", "t", "k")
        await lane.unbind("e", "t", "k")
        await lane.administer("grant.add", subject="anna", action="publish", pattern="shop/*")
        await lane.administer("grant.remove", subject="anna", action="publish", pattern="shop/*")
        await lane.delete_topic("t")
        found = await entries_of(node)
    assert [entry.event for entry in found] == [
        "topic.create",
        "topic.create",
        "topic.configure",
        "topic.create",
        "subscription.seek",
        "subscription.delete",
        "exchange.declare",
        "exchange.bind",
        "exchange.unbind",
        "grant.add",
        "grant.remove",
        "topic.delete",
    ]
    assert found[0].details == {"by": "use"}
    assert found[-3].details == {"subject": "anna", "action": "publish", "pattern": "shop/*"}
    assert [entry.number for entry in found] == list(range(len(found)))


async def test_the_order_of_the_chain_is_that_of_the_log() -> None:
    async with opened() as node:
        session = Session(node, ADMIN)
        await asyncio.gather(*(session.create_topic(f"t{number}", {}) for number in range(50)))
        assert await findings_of(node) == []
        assert len(await entries_of(node)) == 50


async def test_many_entries_cost_few_commits() -> None:
    clock = Clock()
    engine = MemoryEngine(clock)
    async with opened(engine, clock=clock) as node:
        commits = 0
        real = engine.commit

        def counting(appends: object) -> object:
            nonlocal commits
            commits += 1
            return real(appends)  # type: ignore[arg-type]

        engine.commit = counting  # type: ignore[method-assign, assignment]
        noted = [node.audit.note("x", principal=ADMIN, outcome="ok", number=number) for number in range(1_000)]
        await asyncio.gather(*noted)
        assert commits <= 6
        assert await findings_of(node) == []


async def test_a_flood_of_refusals_is_two_entries_a_second() -> None:
    async with opened() as node:
        session = Session(node, Principal("mallory"))
        for _ in range(1_000):
            with pytest.raises(sealane.Forbidden):
                await session.delete_topic("orders")
        await until(lambda: node.audit.log.end == 2)
        first, folded = await entries_of(node)
    assert (first.event, first.details) == ("forbidden", {"action": "manage"})
    assert folded.details == {"action": "manage", "count": 999}


async def test_what_is_counted_is_written_when_the_node_ends() -> None:
    clock = Clock()
    engine = MemoryEngine(clock)
    node = await Node.open(engine, Surroundings(clock, os.urandom), ON)
    for _ in range(3):
        node.audit.note("authentication", principal=None, outcome="refused")
    # The engine is closed by the node: what it wrote last is looked at before that.
    await node.audit.close()
    assert [entry.details for entry in await entries_of(node)] == [{}, {"count": 2}]
    await node.close()


async def test_who_comes_in_and_who_does_not_is_written_down_without_their_secrets() -> None:
    async def authenticate(shown: Introduction) -> Principal:
        if shown.credentials and shown.credentials.get("password") == "right":
            return Principal("anna", kind="user", credential="user:anna", client_id="user:anna")
        raise Unauthenticated("the user or the password is wrong")

    async with opened() as node:
        await node.identity.accounts.ensure("anna")
        gate = Gate(node, authenticate)
        for user, password in (("anna", "right"), ("anna", "canary-1"), ("canary-2", "canary-3")):
            shown = Introduction({"user": user, "password": password}, address="10.0.0.1", door="http")
            try:
                await gate.enter(shown)
            except Unauthenticated:
                continue
        await until(lambda: node.audit.log.end == 3)
        came, known, unknown = await entries_of(node)
    assert (came.event, came.outcome, came.principal, came.credential) == ("authentication", "ok", "anna", "user:anna")
    assert (known.outcome, known.address, known.details["claimed"]) == ("refused", "10.0.0.1", "anna")
    assert "claimed" not in unknown.details
    assert all(b"canary" not in entry.to_line() for entry in (came, known, unknown))


async def test_a_command_that_fails_leaves_no_entry_of_a_change() -> None:
    async with opened() as node, in_process(node) as lane:
        with pytest.raises(sealane.TopicNotFound):
            await lane.delete_topic("not-there")
        await lane.create_topic("t")
        assert [entry.event for entry in await entries_of(node)] == ["topic.create"]


async def test_reading_the_log_is_written_down_once_in_a_while() -> None:
    async with opened() as node, in_process(node) as lane:
        for _ in range(5):
            await lane.administer("audit.read")
        await until(lambda: node.audit.log.end == 1)
        assert [entry.event for entry in await entries_of(node)] == ["audit.read"]


async def test_nobody_writes_to_the_log_or_deletes_it() -> None:
    async with opened() as node, in_process(node) as lane:
        await lane.declare_exchange("e")
        for asking in (
            lambda: lane.publish(AUDIT_LOG, b"forged"),
            lambda: lane.delete_topic(AUDIT_LOG),
            lambda: lane.configure_topic(AUDIT_LOG, retention_seconds=0),
            lambda: lane.create_topic(AUDIT_LOG),
            lambda: lane.bind("e", AUDIT_LOG, "k"),
            lambda: lane.redrive(AUDIT_LOG, "s"),
        ):
            with pytest.raises(sealane.InvalidName, match="belong to the system"):
                await asking()
        with pytest.raises(sealane.InvalidName):
            async with lane.transaction("t") as transaction:
                await transaction.publish(AUDIT_LOG, b"forged")
        assert AUDIT_LOG not in await lane.topics()
        assert [topic.name for topic in (await lane.status()).topics] == []


async def test_the_log_is_consumed_with_a_grant_for_it_and_not_by_a_star() -> None:
    async with opened() as node, in_process(node) as lane:
        await lane.create_topic("t")
        anna = Session(node, Principal("anna"))
        await lane.administer("grant.add", subject="anna", action="consume", pattern="*/*")
        with pytest.raises(sealane.Forbidden):
            await anna.browse(AUDIT_LOG, 0, 0)
        await lane.administer("grant.add", subject="anna", action="consume", pattern=AUDIT_LOG)
        assert (await anna.browse(AUDIT_LOG, 0, 0))[0].batch.payloads()[0].startswith(b'{"number":0')
        with pytest.raises(sealane.Forbidden):
            await anna.administer("audit.read", {})


async def test_without_an_audit_log_everything_works() -> None:
    async with opened(settings=OFF) as node, in_process(node) as lane:
        await lane.create_topic("t")
        assert not node.audit.is_on
        assert AUDIT_LOG not in node.topics
        with pytest.raises(sealane.TopicNotFound, match=r"security\.audit\.enabled"):
            await lane.administer("audit.read")


async def test_a_broker_inside_a_program_keeps_a_log_only_where_there_is_one() -> None:
    clock = Clock()
    engine = MemoryEngine(clock)
    async with opened(settings=None) as node:
        assert not node.audit.is_on
    surroundings = Surroundings(clock, os.urandom)
    first = await Node.open(engine, surroundings, audited=True)
    assert first.audit.is_on
    await first.audit.close()
    again = await Node.open(engine, surroundings)
    assert again.audit.is_on
    await again.close()


async def test_the_chain_goes_on_after_a_restart() -> None:
    clock = Clock()
    engine = MemoryEngine(clock)
    surroundings = Surroundings(clock, os.urandom)
    for number in range(3):
        node = await Node.open(engine, surroundings, ON)
        await Session(node, ADMIN).create_topic(f"t{number}", {})
        assert await findings_of(node) == []
        await node.audit.close()
    assert [entry.number for entry in await entries_of(node)] == [0, 1, 2]


async def test_retention_leaves_a_log_that_is_as_it_was_written() -> None:
    async with opened() as node:
        clock = node.surroundings.clock
        assert isinstance(clock, Clock)
        session = Session(node, ADMIN)
        for number in range(4):
            await session.create_topic(f"t{number}", {})
            clock.pass_seconds(1_000)
        await node._retention.apply()
        clock.pass_seconds(1_500)
        await node._retention.apply()
        assert 0 < node.audit.log.start < 4
        assert await findings_of(node) == []


async def test_a_full_disk_keeps_entries_waiting_and_nobody_from_making_room() -> None:
    async with opened() as node:
        session = Session(node, ADMIN)
        await session.create_topic("t", {})
        written, full = node.audit.log.append, True

        async def refusing(entries: object) -> None:
            if full:
                raise StorageFull(1, 1)
            await written(entries)  # type: ignore[arg-type]

        node.audit.log.append = refusing  # type: ignore[method-assign]
        await asyncio.wait_for(session.delete_topic("t"), 10)
        assert node.audit.log.end == 1
        full = False
        await until(lambda: node.audit.log.end == 2)
        assert [entry.event for entry in await entries_of(node)] == ["topic.create", "topic.delete"]
        assert await findings_of(node) == []


async def test_whoever_changes_something_hears_that_it_could_not_be_written_down() -> None:
    async with opened() as node:

        async def failing(entries: object) -> None:
            raise StorageFailed("the disk is gone")

        session = Session(node, ADMIN)
        written, node.audit.log.append = node.audit.log.append, failing  # type: ignore[method-assign]
        with pytest.raises(StorageFailed, match="the disk is gone"):
            await session.create_topic("t", {})
        node.audit.log.append = written  # type: ignore[method-assign]
        await until(lambda: node.audit.log.end == 1)


async def test_entries_beyond_what_may_wait_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(auditing_module, "WAITING_MAX", 3)
    async with opened() as node:
        noted = [node.audit.note("x", principal=ADMIN, outcome="ok", number=number) for number in range(5)]
        outcomes = await asyncio.gather(*noted, return_exceptions=True)
        assert [type(outcome).__name__ for outcome in outcomes] == ["NoneType"] * 3 + ["Unavailable"] * 2
        await until(lambda: node.audit.log.end == 4)
        assert (await entries_of(node))[-1].details == {"count": 2}


async def test_a_repeated_append_is_written_once() -> None:
    async with opened() as node:
        log = node.audit.log
        await Session(node, ADMIN).create_topic("t", {})
        before = await entries_of(node)
        await log.append(before)  # As after a commit of which nobody knows whether it came to pass.
        assert await entries_of(node) == before


SECRETS = frozenset({"password", "current", "secret", "token", "passphrase", "private_key", "csr"})


def test_no_command_of_the_administration_writes_a_secret_down() -> None:
    assert [name for name, command in COMMANDS.items() if SECRETS & set(command.audited)] == []
    assert (
        COMMANDS["user.create"].told(COMMANDS["user.create"].read("user.create", {"name": "a", "password": "p"})) == {}
    )
