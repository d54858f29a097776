"""`audit.*`: reading the audit log, and finding out whether it is as it was written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import InvalidArgument, TopicNotFound
from sealane.node.administration.table import Command, Commands, Progress
from sealane.node.audit_log import AUDIT_LOG, AuditLog
from sealane.security.audit.entries import Entry, Outcome
from sealane.security.grants.grants import NODE

if TYPE_CHECKING:
    from sealane.node.session import Session

READ_ENTRIES_MAX = 1_000
"""Entries of one answer: a part of what one may carry, even with the longest texts."""
SCAN_ENTRIES_MAX = 10_000
"""Entries that are looked through for one answer, so that others have their turn."""


class ReadEntries(msgspec.Struct, frozen=True):
    start: int = 0
    """The first number of interest."""
    since_us: int | None = None
    event: str | None = None
    """`topic.create`, or `topic` for all of its kind."""
    principal: str | None = None
    outcome: Outcome | None = None
    entries_max: int = READ_ENTRIES_MAX


class VerifyLog(msgspec.Struct, frozen=True):
    pass


async def read(session: Session, wish: ReadEntries, progress: Progress) -> dict[str, Any]:
    """`{"entries", "next", "end"}`: matching ones from `start` on. There is more as long as `next` is below `end`."""
    log = _opened(session)
    if not 1 <= wish.entries_max <= READ_ENTRIES_MAX:
        raise InvalidArgument("entries_max", f"{wish.entries_max:,} is not in 1 to {READ_ENTRIES_MAX:,}")
    at = max(wish.start, 0 if wish.since_us is None else await log.number_at(wish.since_us), log.start)
    end, stop = log.end, at + SCAN_ENTRIES_MAX
    found: list[dict[str, Any]] = []
    async for entry in log.read(at):
        if at >= stop or len(found) >= wish.entries_max:
            break
        if isinstance(entry, Entry):
            at = entry.number + 1
            if _matches(entry, wish):
                found.append(msgspec.to_builtins(entry))
        else:
            at = entry + 1
    else:
        at = end
    return {"entries": found, "next": at, "end": end}


def _matches(entry: Entry, wish: ReadEntries) -> bool:
    return (
        (wish.since_us is None or entry.time_us >= wish.since_us)
        and (wish.event is None or is_of_kind(entry.event, wish.event))
        and wish.principal in (None, entry.principal)
        and wish.outcome in (None, entry.outcome)
    )


def is_of_kind(event: str, kind: str) -> bool:
    """`topic.create` is a `topic.create`, and a `topic`."""
    return event == kind or event.startswith(f"{kind}.")


async def verify(session: Session, wish: VerifyLog, progress: Progress) -> dict[str, Any]:
    chain, findings = await _opened(session).verify(progress)
    numbers = [link.number for link in chain.links]
    return {
        "entries": len(numbers),
        "first": numbers[0] if numbers else None,
        "last": numbers[-1] if numbers else None,
        "findings": [msgspec.to_builtins(finding) for finding in findings],
    }


def _opened(session: Session) -> AuditLog:
    session.authorise("admin", NODE)
    if not session.node.audit.is_on:
        raise TopicNotFound(AUDIT_LOG, "this node keeps no audit log: the setting security.audit.enabled turns it on")
    return session.node.audit.log


COMMANDS_OF_AUDIT: Commands = {
    "audit.read": Command(ReadEntries, read, "reads", audited=("event", "principal", "outcome")),
    "audit.verify": Command(VerifyLog, verify, "reads"),
}
