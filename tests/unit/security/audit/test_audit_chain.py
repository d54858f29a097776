"""The chain of the audit log: whatever is done to an entry is found, and named."""

from __future__ import annotations

import hashlib
import json

import msgspec
import pytest

from sealane.errors import CorruptData
from sealane.security.audit.chain import AUDIT_CUT, Anchor, Finding, Head, verify
from sealane.security.audit.entries import (
    DETAILS_MAX,
    NO_ENTRY,
    TEXT_CHARS_MAX,
    Entry,
    fitting,
    fitting_details,
    from_line,
)


def chained(count: int, *, event: str = "topic.create") -> list[Entry]:
    entries: list[Entry] = []
    previous = NO_ENTRY
    for number in range(count):
        entry = Entry(
            number=number, time_us=1_000 + number, event=event, outcome="ok", principal="anna", previous=previous
        ).sealed()
        entries.append(entry)
        previous = entry.hash
    return entries


BEGINNING = Anchor(0, NO_ENTRY)


def named(findings: list[Finding]) -> list[tuple[str, int]]:
    return [(finding.kind, finding.number) for finding in findings]


def head_of(entries: list[Entry]) -> Head:
    return Head(entries[-1].number, entries[-1].hash)


def test_an_untouched_log_has_no_findings() -> None:
    entries = chained(10)
    assert verify(entries, BEGINNING, head_of(entries)) == []
    assert verify([]) == []


def test_a_hash_is_what_anybody_computes_from_the_exported_line() -> None:
    details: dict[str, str | int] = {"why": 'a "line"\n\x01\x7f é \U0001f600 /', "count": 3}
    entry = Entry(number=0, time_us=1, event="x", outcome="ok", details=details, previous=NO_ENTRY).sealed()
    content = json.loads(entry.to_line())
    told = content.pop("hash")
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert hashlib.sha256(text.encode()).hexdigest() == told
    assert from_line(entry.to_line()) == entry


@pytest.mark.parametrize("field", ["time_us", "event", "outcome", "principal", "address", "resource", "details"])
def test_a_changed_entry_is_named(field: str) -> None:
    entries = chained(10)
    changed = {"time_us": 7, "outcome": "refused", "details": {"a": 1}}.get(field, "another")
    entries[4] = msgspec.structs.replace(entries[4], **{field: changed})
    assert named(verify(entries, BEGINNING, head_of(entries))) == [("changed", 4)]


def test_an_entry_that_was_changed_with_its_hash_is_named() -> None:
    entries = chained(10)
    entries[4] = msgspec.structs.replace(entries[4], principal="mallory").sealed()
    assert named(verify(entries, BEGINNING)) == [("changed", 4)]


def test_a_last_entry_that_was_changed_with_its_hash_is_known_from_the_head() -> None:
    entries = chained(10)
    head = head_of(entries)
    entries[9] = msgspec.structs.replace(entries[9], principal="mallory").sealed()
    assert named(verify(entries, BEGINNING, head)) == [("changed", 9)]


def test_removed_entries_are_named() -> None:
    entries = chained(10)
    kept = entries[:3] + entries[4:6] + entries[8:]
    findings = verify(kept, BEGINNING, head_of(entries))
    assert named(findings) == [("removed", 3), ("removed", 6)]
    assert [finding.text for finding in findings] == ["entry 3 was removed", "entries 6 to 7 were removed"]


def test_a_removed_tail_is_known_from_the_head() -> None:
    entries = chained(10)
    assert named(verify(entries[:7], BEGINNING, head_of(entries))) == [("removed", 7)]
    assert named(verify([], BEGINNING, head_of(entries))) == [("removed", 0)]


def test_a_log_ahead_of_its_head_is_no_alarm() -> None:
    entries = chained(10)
    assert verify(entries, BEGINNING, head_of(entries[:6])) == []


def test_a_removed_beginning_is_known_from_the_anchor() -> None:
    entries = chained(10)
    assert named(verify(entries[2:], BEGINNING)) == [("removed", 0)]
    assert verify(entries[2:]) == []


def test_what_retention_let_go_is_no_alarm() -> None:
    entries = chained(10)
    anchor = Anchor(4, entries[4].previous)
    assert verify(entries[4:], anchor, head_of(entries)) == []
    # The anchor is written first: it may be that nothing was let go after it.
    assert verify(entries, anchor, head_of(entries)) == []
    assert named(verify(entries[5:], anchor, head_of(entries))) == [("removed", 4)]


def test_another_beginning_than_retention_left_is_named() -> None:
    entries = chained(10)
    assert named(verify(entries[4:], Anchor(4, "f" * 64))) == [("changed", 4)]


@pytest.mark.parametrize(("moved", "to"), [(2, 6), (7, 1), (0, 9), (9, 0)])
def test_a_moved_entry_is_named(moved: int, to: int) -> None:
    entries = chained(10)
    head = head_of(entries)
    entries.insert(to, entries.pop(moved))
    assert named(verify(entries, BEGINNING, head)) == [("reordered", moved)]


def test_an_inserted_entry_is_named_with_its_place() -> None:
    entries = chained(10)
    forged = Entry(number=5, time_us=1, event="x", outcome="ok", previous=entries[4].hash).sealed()
    (finding,) = verify([*entries[:5], forged, *entries[5:]], BEGINNING, head_of(entries))
    assert (finding.kind, finding.number) == ("inserted", 5)
    assert "place 5" in finding.text


def test_an_entry_that_is_there_twice_is_named() -> None:
    entries = chained(10)
    assert named(verify([*entries, entries[3]], BEGINNING, head_of(entries))) == [("inserted", 3)]


def test_a_number_out_of_all_proportion_costs_nothing() -> None:
    entries = chained(3)
    forged = Entry(number=10**15, time_us=1, event="x", outcome="ok", previous="0" * 64).sealed()
    assert named(verify([*entries, forged], BEGINNING)) == [("removed", 3)]


def test_what_a_node_found_missing_at_its_start_stays_a_finding() -> None:
    entries = chained(3)
    told = Entry(
        number=3,
        time_us=9,
        event=AUDIT_CUT,
        outcome="refused",
        details={"first": 3, "last": 7},
        previous=entries[2].hash,
    ).sealed()
    (finding,) = verify([*entries, told], BEGINNING)
    assert finding.kind == "removed"
    assert "entries 3 to 7 were gone" in finding.text


@pytest.mark.parametrize("line", [b"", b"{}", b"not json", b'{"number": "x"}', b"\xff\xfe"])
def test_a_line_that_is_no_entry_is_refused(line: bytes) -> None:
    with pytest.raises(CorruptData, match="not an entry"):
        from_line(line)


def test_texts_are_cut_at_their_limit_and_can_be_encoded() -> None:
    assert fitting("x" * TEXT_CHARS_MAX) == "x" * TEXT_CHARS_MAX
    assert fitting("x" * (TEXT_CHARS_MAX + 1)) == "x" * (TEXT_CHARS_MAX - 1) + "…"
    assert fitting("\ud800").encode() == rb"\ud800"
    assert len(fitting_details({str(number): number for number in range(DETAILS_MAX + 1)})) == DETAILS_MAX
