"""Jobs over the lake in the node's audit log: an entry when one begins, and one when it ends.

The node has no part in what happens to the lake's files: it writes down what the job says, and that the job says it.
What could tell a person, a number or a condition's values, is left out of it or is a hash.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from sealane.errors import SealaneError

if TYPE_CHECKING:
    from sealane.client.sync import SyncLane

NOTE = "audit.note"
TEXT_CHARS = 256
"""What the audit log has of a text; longer ones are refused, so they are cut here."""

_LITERAL = re.compile(r"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|\d+(?:[.,:]\d+)*")
_QUOTES = re.compile(r"['\"]")
_NUMBER = re.compile(r"\+?\d(?:[ ./()-]{0,2}\d){4,}")
_HIDDEN = "?"

Told = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Job:
    """What the audit log is told of a job before it begins."""

    name: str
    """`replay`, `redrive`, `reseal` or `forget`."""
    lake: Path
    arguments: Mapping[str, object] = field(default_factory=dict)
    """By their names, already without what must not be told; those that are None were not given."""


@dataclass(slots=True)
class Said:
    """What the entry of the end will tell."""

    counts: dict[str, int] = field(default_factory=dict)

    def telling(self, told: Told) -> Told:
        """The same, which also keeps in mind how far a job is, for the entry of one that is stopped."""

        def tell(done: int, total: int) -> None:
            self.counts.update(done=done, total=total)
            told(done, total)

        return tell

    def ends_with(self, **counts: int) -> None:
        self.counts = counts


@contextmanager
def audited(lane: SyncLane | None, job: Job) -> Iterator[Said]:
    """Do the job in the block. Without a lane nothing is written down.

    If its beginning cannot be written down, nothing is done. Raises what the node says.
    """
    said = Said()
    if lane is None:
        yield said
        return
    begun = datetime.now(UTC)
    run = secrets.token_hex(8)

    def note(phase: str, **details: str | int) -> None:
        told = {"run": run, "phase": phase, **details}
        lane.administer(NOTE, action=f"pipeline.{job.name}", target=_cut(str(job.lake), end=True), details=told)

    try:
        note("begun", **arguments_told(job.arguments))
    except SealaneError as error:
        error.add_note(
            "nothing was done: a job over the lake has to be in the node's audit log, which takes the grant `publish "
            "_system/audit`; --no-audit does it without"
        )
        raise
    try:
        yield said
    except BaseException as error:
        # Why it was stopped matters more than that nobody could be told; the entry of the beginning has no end, then.
        with suppress(SealaneError):
            note("stopped", error=type(error).__name__, **_times(begun), **said.counts)
        raise
    try:
        note("ended", **_times(begun), **said.counts)
    except SealaneError as error:
        error.add_note("the job itself is done; only its end is not in the audit log")
        raise


def _times(begun: datetime) -> dict[str, str]:
    return {"begun": _moment(begun), "ended": _moment(datetime.now(UTC))}


def _moment(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="seconds")


def arguments_told(arguments: Mapping[str, object]) -> dict[str, str | int]:
    """As an entry has them: texts that fit it, times in UTC."""
    return {name: _told(value) for name, value in arguments.items() if value is not None and value != ""}


def _told(value: object) -> str | int:
    if isinstance(value, datetime):
        return _moment(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    return _cut(f"{value:g}" if isinstance(value, float) else str(value))


def _cut(text: str, *, end: bool = False) -> str:
    """Printable, and as long as an entry takes it; of a path its end tells more than its beginning."""
    plain = "".join(each if each.isprintable() else _HIDDEN for each in text)
    if len(plain) <= TEXT_CHARS:
        return plain
    return "…" + plain[1 - TEXT_CHARS :] if end else plain[: TEXT_CHARS - 1] + "…"


def without_values(condition: str | None) -> str | None:
    """A condition in SQL without its literals, in which a number or a name may stand: `key = ? AND priority > ?`."""
    if condition is None:
        return None
    hidden = _LITERAL.sub(_HIDDEN, condition)
    # A quote that is left over has no end here, and perhaps one for Spark: nobody knows what is a literal, then.
    return _HIDDEN if _QUOTES.search(hidden) else hidden


def without_numbers(text: str | None) -> str | None:
    """A text without what could be a phone number."""
    return None if text is None else _NUMBER.sub(_HIDDEN, text)
