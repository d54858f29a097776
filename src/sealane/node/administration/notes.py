"""`audit.note`: a client says what it has done elsewhere, such as a job over the lake, which the node has no part in.

It takes a grant to `publish` to the audit log, in so many words; nobody publishes to it all the same. An entry's name
begins with `note.`, so that nothing a client says can be taken for what the node has seen.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import InvalidArgument, TopicNotFound
from sealane.node.administration.table import Command, Commands, Progress
from sealane.node.audit_log import AUDIT_LOG
from sealane.security.audit.entries import DETAILS_MAX, TEXT_CHARS_MAX

if TYPE_CHECKING:
    from sealane.node.session import Session

EVENT = "note"
"""What the names of such entries begin with."""
SAID_BY = "said_by"
"""The detail that says so once more."""
NOTE_NAME_CHARS_MAX = 64
"""Of an action and of a detail's name: they are words, and no texts."""
NOTE_DETAILS_MAX = DETAILS_MAX - 1
"""One less than an entry has room for: the node adds who has said it."""

_NAME = re.compile(r"[a-z][a-z0-9_-]*(\.[a-z0-9_-]+)*", re.ASCII)
_INT64 = range(-(1 << 63), 1 << 63)


class AddNote(msgspec.Struct, frozen=True):
    action: str
    """What was done, such as `pipeline.forget`."""
    target: str = ""
    """To what."""
    details: dict[str, str | int] = {}


async def note(session: Session, given: AddNote, progress: Progress) -> dict[str, Any]:
    """`{"event"}`: the name of the entry, which is durable."""
    session.authorise("publish", AUDIT_LOG)
    if not session.node.audit.is_on:
        raise TopicNotFound(AUDIT_LOG, "this node keeps no audit log: the setting security.audit.enabled turns it on")
    _check(given)
    session.node.audit.notes.spend(session.principal.name, session.node.measures.now())
    event = f"{EVENT}.{given.action}"
    await session.note(event, given.target, {SAID_BY: "client", **given.details})
    return {"event": event}


def _check(given: AddNote) -> None:
    """Raise `InvalidArgument` for what an entry would not have as it was given. No value is repeated."""
    _check_name("action", given.action)
    _check_text("target", given.target)
    if len(given.details) > NOTE_DETAILS_MAX:
        raise InvalidArgument("details", f"there are {len(given.details):,}, the limit is {NOTE_DETAILS_MAX}")
    for name, value in given.details.items():
        _check_name("details", name)
        if name == SAID_BY:
            raise InvalidArgument("details", f"{SAID_BY!r} is what the node says itself")
        if isinstance(value, str):
            _check_text(name, value)
        elif value not in _INT64:
            raise InvalidArgument(name, "this number does not fit into 64 bits")


def _check_name(field: str, name: str) -> None:
    if len(name) > NOTE_NAME_CHARS_MAX or _NAME.fullmatch(name) is None:
        problem = f"a name here has 1 to {NOTE_NAME_CHARS_MAX} of a-z, 0-9, '_', '-' and '.', and begins with a letter"
        raise InvalidArgument(field, problem)


def _check_text(field: str, text: str) -> None:
    if len(text) > TEXT_CHARS_MAX:
        raise InvalidArgument(field, f"it has {len(text):,} characters, the limit is {TEXT_CHARS_MAX}")
    if not text.isprintable():
        raise InvalidArgument(field, "it has characters that cannot be printed")


COMMANDS_OF_NOTES: Commands = {"audit.note": Command(AddNote, note, "notes")}
