"""The file of received messages: each once, durable when it is said so, never torn."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from sealane.cipher.errors import OutputFull, OutputInUse
from sealane.cipher.received import Entry, open_received
from sealane.cipher.received.json_array import ARRAY_BYTES_MAX
from sealane.cipher.received.recent_ids import RecentIds
from sealane.errors import CorruptData, InvalidArgument

NAMES = ("received_messages.json", "received.jsonl")
DEADLINE_SECONDS = 60.0
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)


def entry(message_id: str, body: bytes = b"hello") -> Entry:
    return Entry.of(message_id, body, NOON)


def content(path: Path) -> list[dict[str, Any]]:
    """As another program reads it."""
    text = path.read_text(encoding="utf-8")
    found: list[dict[str, Any]]
    found = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    return found


def ids(path: Path) -> list[str]:
    return [each["message_id"] for each in content(path)]


@pytest.mark.parametrize("name", NAMES)
def test_messages_are_kept_with_their_ids_and_times(name: str, tmp_path: Path) -> None:
    with open_received(tmp_path / name) as received:
        received.store([entry("a", "Grüße\n".encode()), entry("b", b"\xff\x00")])
        received.store([entry("c")])
    assert content(tmp_path / name) == [
        {"message_id": "a", "received_at": "2026-05-01T12:00:00.000Z", "message": "Grüße\n"},
        {"message_id": "b", "received_at": "2026-05-01T12:00:00.000Z", "message_base64": "/wA="},
        {"message_id": "c", "received_at": "2026-05-01T12:00:00.000Z", "message": "hello"},
    ]
    assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600, "it holds what was secret on the way"


@pytest.mark.parametrize("name", NAMES)
def test_it_knows_what_it_has_from_earlier_and_goes_on_behind_it(name: str, tmp_path: Path) -> None:
    with open_received(tmp_path / name) as received:
        received.store([entry("a"), entry("b")])
        assert "a" in received.ids
    with open_received(tmp_path / name) as received:
        assert ("a" in received.ids, "b" in received.ids, "c" in received.ids) == (True, True, False)
        received.store([entry("c")])
    assert ids(tmp_path / name) == ["a", "b", "c"]


@pytest.mark.parametrize("name", NAMES)
def test_one_receiver_at_a_time_writes_to_it(name: str, tmp_path: Path) -> None:
    with open_received(tmp_path / name), pytest.raises(OutputInUse, match="a file of its own"):
        open_received(tmp_path / name)
    with open_received(tmp_path / name) as received:
        received.store([entry("a")])
    assert [path.name for path in tmp_path.iterdir()] == [name], "nothing else is left beside it"


@pytest.mark.parametrize("name", NAMES)
def test_a_link_stays_one_and_a_mode_stays_as_it_was(name: str, tmp_path: Path) -> None:
    real = tmp_path / "elsewhere" / name
    real.parent.mkdir()
    (tmp_path / name).symlink_to(real)
    with open_received(tmp_path / name) as received:
        received.store([entry("a")])
    real.chmod(0o640)
    with open_received(tmp_path / name) as received:
        received.store([entry("b")])
    assert (tmp_path / name).is_symlink()
    assert ids(real) == ["a", "b"]
    assert stat.S_IMODE(real.stat().st_mode) == 0o640


@pytest.mark.parametrize("name", NAMES)
def test_a_directory_that_is_missing_is_made_and_an_empty_file_is_as_good_as_none(name: str, tmp_path: Path) -> None:
    path = tmp_path / "new" / name
    path.parent.mkdir()
    path.touch()
    with open_received(path) as received:
        assert len(received.ids) == 0
        received.store([entry("a")])
    with open_received(tmp_path / "other" / name):
        pass
    assert ids(path) == ["a"]


@pytest.mark.parametrize("name", ["received", "received.txt", "received.json.gz"])
def test_another_suffix_says_nothing_of_the_shape(name: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidArgument, match=r"neither \.json"):
        open_received(tmp_path / name)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("r.json", b'{"message_id": "a"}', "is not a JSON array"),
        ("r.json", b'[{"message_id": "a"}', "is not a JSON array"),
        ("r.json", b'[{"message_id": "a"}, {"id": "b"}]', "entry 2 has no message_id"),
        ("r.json", b"\xff", "is not a JSON array"),
        ("r.jsonl", b'{"message_id": "a"}\nnotes\n', "line 2 is no entry"),
        ("r.jsonl", b'{"message_id": "a"}\nnotes', "line 2 is no entry"),
        ("r.jsonl", b'[{"message_id": "a"}]\n', "line 1 is no entry"),
        ("r.jsonl", b"my only copy of something", "line 1 is no entry"),
    ],
)
def test_a_file_with_something_else_is_left_as_it_is(name: str, text: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(text)
    with pytest.raises(CorruptData, match=problem):
        open_received(tmp_path / name)
    assert (tmp_path / name).read_bytes() == text
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_others_have_added_to_an_array_stays(tmp_path: Path) -> None:
    path = tmp_path / "received.json"
    path.write_text(json.dumps([{"message_id": "a", "read_by": ["anna"], "message": "Grüße"}], indent=4))
    with open_received(path) as received:
        received.store([entry("b")])
    assert content(path)[0] == {"message_id": "a", "read_by": ["anna"], "message": "Grüße"}
    assert ids(path) == ["a", "b"]


def test_an_array_ends_before_each_write_takes_seconds(tmp_path: Path) -> None:
    path = tmp_path / "received.json"
    with open_received(path) as received:
        received.store([entry("a", b"x" * (ARRAY_BYTES_MAX - 200))])
        with pytest.raises(OutputFull, match=r"receive into a \.jsonl file"):
            received.store([entry("b", b"x" * 200)])
        assert "b" not in received.ids
        received.store([entry("c", b"")])
    assert ids(path) == ["a", "c"]
    path.write_bytes(bytes(ARRAY_BYTES_MAX + 1))
    with pytest.raises(OutputFull):
        open_received(path)


def test_an_array_that_cannot_be_replaced_is_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "received.json"
    with open_received(path) as received:
        received.store([entry("a")])

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as broken:
            broken.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                received.store([entry("b")])
        assert ids(path) == ["a"]
        received.store([entry("c")])
    assert ids(path) == ["a", "c"]


@pytest.mark.parametrize("torn", [1, 10, 14, 40, -2])
def test_a_line_that_was_written_in_part_is_cut_off(torn: int, tmp_path: Path) -> None:
    path = tmp_path / "received.jsonl"
    with open_received(path) as received:
        received.store([entry("a")])
    with path.open("ab") as file:
        file.write(entry("b").written()[:torn] + bytes(3))
    with open_received(path) as received:
        assert "b" not in received.ids
        received.store([entry("c")])
    assert ids(path) == ["a", "c"]


def test_a_line_that_only_misses_its_end_counts(tmp_path: Path) -> None:
    path = tmp_path / "received.jsonl"
    path.write_bytes(entry("a").written() + b"\n\n" + entry("b").written())
    with open_received(path) as received:
        assert "b" in received.ids
        received.store([entry("c")])
    assert [json.loads(line)["message_id"] for line in path.read_text().split()] == ["a", "b", "c"]


def test_lines_that_a_full_disk_took_in_part_are_taken_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "received.jsonl"
    write = os.write

    def fills_up(descriptor: int, data: bytes) -> int:
        if len(data) < 80:
            raise OSError(28, "No space left on device")
        return write(descriptor, data[:80])

    with open_received(path) as received:
        received.store([entry("a")])
        with monkeypatch.context() as full:
            full.setattr(os, "write", fills_up)
            with pytest.raises(OSError, match="No space left"):
                received.store([entry("b"), entry("c")])
        assert "b" not in received.ids
        assert ids(path) == ["a"]
        received.store([entry("d")])
    assert ids(path) == ["a", "d"]


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from sealane.cipher.received import Entry, open_received
with open_received(Path(sys.argv[1])) as received:
    for number in range(1_000_000):
        stored = [Entry.of(f"{len(received.ids)}-{part}", b"x" * 3_000, datetime.now(UTC)) for part in range(3)]
        received.store(stored)
        print(stored[-1].message_id, flush=True)
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_receiver_that_is_killed_at_any_moment_leaves_all_that_it_said_was_stored(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    told: list[str] = []
    for round_number in range(4):
        with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            told += [process.stdout.readline().strip() for _ in range(3 + 5 * round_number)]
            process.send_signal(signal.SIGKILL)
            told += process.stdout.read().split()
        if path.suffix == ".json":
            content(path)  # Whole at every moment, also before anybody has mended it.
        with open_received(path) as received:
            assert [message_id for message_id in told if message_id not in received.ids] == []
    stored = ids(path)
    assert len(stored) == len(set(stored))
    assert [path.name for path in tmp_path.iterdir()] == [name], "the next one clears up what a kill leaves behind"


def test_whoever_looks_at_an_array_while_it_is_written_sees_a_whole_one(tmp_path: Path) -> None:
    path = tmp_path / "received.json"
    with subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        stop = time.monotonic() + DEADLINE_SECONDS
        sizes: set[int] = set()
        while len(sizes) < 20 and time.monotonic() < stop:
            sizes.add(len(content(path)))
        process.kill()
    assert len(sizes) == 20


def test_only_the_last_ids_are_remembered() -> None:
    recent = RecentIds(3)
    recent.add("abc")
    recent.add("d")
    assert ["a" in recent, "b" in recent, "d" in recent, len(recent)] == [False, True, True, 3]


@pytest.mark.parametrize("name", NAMES)
def test_the_lock_of_one_that_is_gone_is_in_nobodys_way(name: str, tmp_path: Path) -> None:
    (tmp_path / f".{name}.lock").touch()
    with open_received(tmp_path / name) as received:
        received.store([entry("a")])
    assert ids(tmp_path / name) == ["a"]
