"""What the audit log is told of a job: enough to know what was done, and nothing of whom."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.errors import InvalidArgument, SealaneError
from sealane.node import NodeSettings
from sealane.pipeline.bulk.auditing import Job, arguments_told, audited, without_numbers, without_values
from sealane.pipeline.bulk.forgetting import subject_of
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.security.settings import AuditSettings, SecuritySettings

ON = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=True)))


def notes_of(lane: sealane.SyncLane) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = lane.administer("audit.read", event="note")["entries"]
    return found


@pytest.mark.parametrize(
    ("condition", "told"),
    [
        ("key = '+49 170 1234567'", "key = ?"),
        ("headers['region'] = \"eu\" AND priority > 7", "headers[?] = ? AND priority > ?"),
        (r"key = 'it\'s +491701234567' OR TRUE", "key = ? OR TRUE"),
        ("key = 'it''s me' OR offset < 1.5", "key = ? OR offset < ?"),
        ("key = 'never ends", "?"),
        ("offset < 10 -- Anna's number", "?"),
        (None, None),
    ],
)
def test_a_condition_is_told_without_its_values(condition: str | None, told: str | None) -> None:
    assert without_values(condition) == told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no route to +49 (0)170 123-4567 now", "no route to ? now"),
        ("status 503", "status 503"),
        ("01701234567", "?"),
        (None, None),
    ],
)
def test_a_text_is_told_without_numbers(text: str | None, told: str | None) -> None:
    assert without_numbers(text) == told


def test_arguments_are_as_an_entry_takes_them() -> None:
    moment = datetime(2026, 1, 31, 12, tzinfo=UTC)
    given = {"since": moment, "until": None, "rate": 2.5, "name": "", "reason": "x" * 300, "key": 7, "to": "a\nb"}
    told = {"since": "2026-01-31T12:00:00+00:00", "rate": "2.5", "reason": "x" * 255 + "…", "key": 7, "to": "a?b"}
    assert arguments_told(given) == told


def test_a_job_has_an_entry_when_it_begins_and_one_when_it_ends(tmp_path: Path) -> None:
    with sealane.embedded_sync(settings=ON) as lane:
        with audited(lane, Job("forget", tmp_path, {"subject": "tel:1", "domain": None})) as said:
            (begun,) = notes_of(lane)
            said.telling(lambda done, total: None)(1, 2)
            said.ends_with(rows=3)
        _, ended = notes_of(lane)
    assert {begun["event"], ended["event"]} == {"note.pipeline.forget"}
    assert begun["resource"] == ended["resource"] == str(tmp_path)
    assert begun["details"]["run"] == ended["details"]["run"]
    told = {"said_by": "client", "run": begun["details"]["run"], "phase": "begun", "subject": "tel:1"}
    assert begun["details"] == told
    times = {name: datetime.fromisoformat(ended["details"].pop(name)) for name in ("begun", "ended")}
    assert times["begun"] <= times["ended"]
    assert ended["details"] == {"said_by": "client", "run": told["run"], "phase": "ended", "rows": 3}


def test_a_job_that_fails_is_told_as_stopped_with_how_far_it_was(tmp_path: Path) -> None:
    def stopped(lane: sealane.SyncLane) -> None:
        with audited(lane, Job("reseal", tmp_path)) as said:
            said.telling(lambda done, total: None)(1, 2)
            raise KeyboardInterrupt

    with sealane.embedded_sync(settings=ON) as lane:
        with pytest.raises(KeyboardInterrupt):
            stopped(lane)
        details = notes_of(lane)[-1]["details"]
    assert (details["phase"], details["error"]) == ("stopped", "KeyboardInterrupt")
    assert (details["done"], details["total"]) == (1, 2)


def test_a_job_that_cannot_be_written_down_is_not_done(tmp_path: Path) -> None:
    off = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=False)))
    with (
        sealane.embedded_sync(settings=off) as lane,
        pytest.raises(SealaneError, match="keeps no audit log") as refused,
        audited(lane, Job("reseal", tmp_path)),
    ):
        pytest.fail("it was done")
    assert "--no-audit" in "".join(refused.value.__notes__)


def test_without_a_lane_nothing_is_written_down(tmp_path: Path) -> None:
    with audited(None, Job("reseal", tmp_path)) as said:
        said.ends_with(rows=1)


def test_whom_a_forgetting_is_about_is_a_hash_that_only_the_lakes_keys_make(tmp_path: Path) -> None:
    keys, others = (LakeKeys.open_or_make(tmp_path / name) for name in ("lake.keys", "other.keys"))
    everywhere = subject_of(keys, number="+49 170 1234567")
    assert everywhere == subject_of(keys, number="0049 170 1234567") != subject_of(others, number="+49 170 1234567")
    assert subject_of(keys, number="+49 170 1234567", domain="shop") == keys.hash_number("shop", "+491701234567")
    by_key = {subject_of(keys, key=key) for key in (b"customer-42", b"order-42", b"42")}
    assert len(by_key) == 3
    assert all(each.startswith("key:") and len(each) == len("key:") + 64 for each in by_key)
    with pytest.raises(InvalidArgument):
        subject_of(keys, number="Anna")
