"""Notes: what a client says of itself is in the audit log as that, and in bounds."""

from __future__ import annotations

from typing import Any

import pytest

from sealane.errors import Forbidden, InvalidArgument, InvalidName, RateLimited, TopicNotFound
from sealane.message import Limits, Stamp, from_payloads
from sealane.node.administration.notes import NOTE_DETAILS_MAX, NOTE_NAME_CHARS_MAX
from sealane.node.audit_folding import Origin
from sealane.node.note_rates import NOTERS_SWEPT_MIN, NOTES_AT_ONCE_MAX, NoteRates
from sealane.node.session import Session
from sealane.security.audit.entries import TEXT_CHARS_MAX
from sealane.security.grants.grants import Grant
from sealane.security.principals import ADMIN, Principal
from tests.unit.node.test_auditing import OFF, entries_of, findings_of, opened

NOTE: dict[str, Any] = {"action": "pipeline.forget", "target": "/lake", "details": {"rows": 3, "phase": "ended"}}
ROBOT = Principal("robot", "shop", frozenset({"member", "manager"}))


async def test_a_note_says_who_and_that_it_was_said_by_the_client() -> None:
    async with opened() as node:
        session = Session(node, ADMIN, Origin("10.0.0.1", "native"))
        assert await session.administer("audit.note", NOTE) == {"event": "note.pipeline.forget"}
        (entry,) = await entries_of(node)
        assert (entry.event, entry.outcome, entry.resource) == ("note.pipeline.forget", "ok", "/lake")
        assert (entry.principal, entry.address, entry.door) == (ADMIN.name, "10.0.0.1", "native")
        assert entry.details == {"said_by": "client", "rows": 3, "phase": "ended"}
        assert await findings_of(node) == []


async def test_it_takes_a_grant_of_its_own_by_which_nobody_publishes() -> None:
    async with opened() as node:
        session = Session(node, ROBOT)
        await node.identity.grants.add(Grant("robot", "publish", "*/*"))
        with pytest.raises(Forbidden):
            await session.administer("audit.note", NOTE)
        await node.identity.grants.add(Grant("robot", "publish", "_system/audit"))
        await session.administer("audit.note", NOTE)
        batch = from_payloads([b"{}"], Stamp(1, bytes(16)), limits=Limits())
        with pytest.raises(InvalidName):
            await session.publish("_system/audit", batch)
        assert [entry.event for entry in await entries_of(node)] == ["forbidden", "note.pipeline.forget"]


@pytest.mark.parametrize(
    "given",
    [
        {"action": ""},
        {"action": "Forget"},
        {"action": "forget it"},
        {"action": ".forget"},
        {"action": "x" * (NOTE_NAME_CHARS_MAX + 1)},
        {"target": "x" * (TEXT_CHARS_MAX + 1)},
        {"target": "two\nlines"},
        {"details": {"said_by": "node"}},
        {"details": {"": "x"}},
        {"details": {"rows": 1 << 63}},
        {"details": {"rows": "x" * (TEXT_CHARS_MAX + 1)}},
        {"details": {"rows": ["a"]}},
        {"details": {f"d{number}": 1 for number in range(NOTE_DETAILS_MAX + 1)}},
    ],
)
async def test_what_an_entry_would_not_have_as_it_was_said_is_refused(given: dict[str, Any]) -> None:
    async with opened() as node:
        with pytest.raises(InvalidArgument):
            await Session(node, ADMIN).administer("audit.note", NOTE | given)
        assert await entries_of(node) == []


async def test_the_longest_note_is_kept_whole() -> None:
    text = "x" * TEXT_CHARS_MAX
    details = {f"d{number}": text for number in range(NOTE_DETAILS_MAX)}
    async with opened() as node:
        given = {"action": "x" * NOTE_NAME_CHARS_MAX, "target": text, "details": details}
        await Session(node, ADMIN).administer("audit.note", given)
        (entry,) = await entries_of(node)
    assert (entry.resource, entry.details) == (text, {"said_by": "client", **details})


async def test_a_node_without_an_audit_log_says_so() -> None:
    async with opened(settings=OFF) as node:
        with pytest.raises(TopicNotFound, match="keeps no audit log"):
            await Session(node, ADMIN).administer("audit.note", NOTE)


async def test_nobody_fills_the_log_with_notes() -> None:
    async with opened() as node:
        session = Session(node, ADMIN)
        for _ in range(NOTES_AT_ONCE_MAX):
            node.audit.notes.spend(ADMIN.name, node.measures.now() + 3_600)  # As if they came in one moment.
        with pytest.raises(RateLimited, match="notes"):
            await session.administer("audit.note", NOTE)
        assert await entries_of(node) == []


def test_each_principal_has_a_rate_and_is_forgotten_once_it_is_quiet() -> None:
    rates = NoteRates()
    for _ in range(NOTES_AT_ONCE_MAX):
        rates.spend("busy", 0.0)
    with pytest.raises(RateLimited) as refused:
        rates.spend("busy", 0.0)
    assert refused.value.retry_after_seconds == pytest.approx(1.0)
    rates.spend("busy", 1.0)
    rates.spend("other", 1.0)
    for number in range(NOTERS_SWEPT_MIN):
        rates.spend(f"guest-{number}", 2.0)
    rates.spend("late", 1_000.0)
    assert len(rates) == 1
