"""Metadata: compare-and-set values with leases, trims, drops, compacted files, wrapped keys; durable, and upgraded."""

from __future__ import annotations

import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine.contract import PartitionKey
from sealane.engine.local.manifest import CompactedFile, Place
from sealane.engine.local.metadata import Metadata
from sealane.engine.local.metadata_schema import METADATA_VERSION, UPGRADES
from sealane.engine.local.record import JOURNAL, MESSAGES
from sealane.engine.local.trims import Trim
from sealane.errors import FormatTooNew, StorageFailed, VersionMismatch
from sealane.security.at_rest.keys import WrappedKey

ORDERS = PartitionKey("default", "orders", 1, 0)
CARTS = PartitionKey("default", "carts", 2, 3)


class Clock:
    now_us = 1_000_000

    def __call__(self) -> int:
        return self.now_us


class Directory:
    """A database file that can be opened again, as after a restart."""

    def __init__(self, path) -> None:
        self.path = path
        self.clock = Clock()
        self._open: list[sqlite3.Connection] = []

    def open(self) -> Metadata:
        connection = sqlite3.connect(self.path)
        self._open.append(connection)
        return Metadata(connection, self.clock)

    def close(self) -> None:
        for connection in self._open:
            connection.close()


@pytest.fixture
def directory(tmp_path):
    directory = Directory(tmp_path / "meta.db")
    yield directory
    directory.close()


def file(name: str, partition: PartitionKey = ORDERS, kind: int = MESSAGES, base: int = 0) -> CompactedFile:
    places = (Place(base, 2, 0, 50, 7, 2**64 - 1, 1), Place(base + 2, 1, 50, 49, 9, 0, 3))
    return CompactedFile(name, partition, kind, 1, True, 99, base, base + 3, places)


def test_boots_are_counted_over_restarts(directory):
    assert [directory.open().boot(), directory.open().boot()] == [1, 2]


def test_a_put_value_is_there_after_a_restart(directory):
    version = directory.open().put("a", b"1", expected=0)
    assert directory.open().get("a") == (b"1", version, None)


def test_a_put_with_another_version_than_expected_changes_nothing(directory):
    metadata = directory.open()
    version = metadata.put("a", b"1", expected=0)
    with pytest.raises(VersionMismatch) as refusal:
        metadata.put("a", b"2", expected=0)
    assert (refusal.value.expected, refusal.value.actual) == (0, version)
    with pytest.raises(VersionMismatch):
        metadata.put("b", b"2", expected=1)
    assert metadata.get("a") == (b"1", version, None)


def test_versions_of_a_key_never_repeat_even_after_a_delete(directory):
    metadata = directory.open()
    first = metadata.put("a", b"1", expected=0)
    metadata.delete("a", expected=first)
    assert metadata.get("a") is None
    second = directory.open().put("a", b"1", expected=0)
    assert second > first


def test_a_delete_needs_the_right_version(directory):
    metadata = directory.open()
    version = metadata.put("a", b"1", expected=0)
    with pytest.raises(VersionMismatch):
        metadata.delete("a", expected=version + 1)
    with pytest.raises(VersionMismatch):
        metadata.delete("b", expected=version)
    assert metadata.get("a") is not None


def test_a_leased_key_vanishes_exactly_at_its_deadline(directory):
    metadata = directory.open()
    version = metadata.put("a", b"1", expected=0, lease_seconds=2.5)
    directory.clock.now_us += 2_499_999
    assert metadata.get("a") == (b"1", version, 3_500_000)
    directory.clock.now_us += 1
    assert metadata.get("a") is None
    assert metadata.scan("") == []
    with pytest.raises(VersionMismatch):
        metadata.put("a", b"2", expected=version)
    assert metadata.put("a", b"2", expected=0) > version


def test_putting_a_leased_key_again_renews_or_ends_its_lease(directory):
    metadata = directory.open()
    version = metadata.put("a", b"1", expected=0, lease_seconds=1)
    directory.clock.now_us += 900_000
    version = metadata.put("a", b"1", expected=version, lease_seconds=1)
    directory.clock.now_us += 900_000
    metadata.put("a", b"1", expected=version)
    directory.clock.now_us += 10**12
    assert metadata.get("a") is not None


@given(st.sets(st.text(alphabet="ab_%./é\U0001f600", max_size=5)), st.text(alphabet="ab_%./é\U0001f600", max_size=3))
def test_scan_gives_the_keys_with_the_prefix_in_order(keys, prefix):
    metadata = Metadata(sqlite3.connect(":memory:"), lambda: 0)
    for key in keys:
        metadata.put(key, key.encode(), expected=0)
    found = [(key, value.data) for key, value in metadata.scan(prefix)]
    assert found == [(key, key.encode()) for key in sorted(keys) if key.startswith(prefix)]
    metadata.close()


def test_trims_never_move_backwards(directory):
    metadata = directory.open()
    metadata.save_trim(ORDERS, Trim(10, 5))
    metadata.save_trim(ORDERS, Trim(7, 6))
    metadata.save_trim(CARTS, Trim(1, 0, 3))
    metadata.save_trim(CARTS, Trim(journal_folded=2))
    assert directory.open().trims() == {ORDERS: Trim(10, 6), CARTS: Trim(1, 0, 3)}


def test_a_drop_takes_trim_and_compacted_files_with_it(directory):
    metadata = directory.open()
    metadata.save_trim(ORDERS, Trim(10, 5))
    metadata.apply_compaction([file("o"), file("c", CARTS)], [], [])
    metadata.save_drop(ORDERS)
    metadata.save_drop(ORDERS)
    metadata = directory.open()
    assert metadata.dropped() == {ORDERS}
    assert metadata.trims() == {}
    assert [f.name for f in metadata.manifest()] == ["c"]
    assert metadata.garbage() == ["o"]
    metadata.forget_drops([ORDERS])
    assert metadata.dropped() == set()


def test_a_compaction_swaps_files_at_once_and_remembers_what_to_delete(directory):
    metadata = directory.open()
    metadata.apply_compaction([file("a"), file("j", kind=JOURNAL)], [], ["wal/1.wal"])
    metadata.apply_compaction([file("b", base=0), file("b2", base=3)], ["a"], ["wal/2.wal"])
    metadata = directory.open()
    assert metadata.manifest() == [file("b", base=0), file("b2", base=3), file("j", kind=JOURNAL)]
    assert metadata.garbage() == ["a", "wal/1.wal", "wal/2.wal"]
    metadata.forget_garbage(["a", "wal/1.wal"])
    assert directory.open().garbage() == ["wal/2.wal"]


def test_files_of_a_compaction_that_was_begun_and_not_applied_are_garbage(directory):
    metadata = directory.open()
    metadata.begin_compaction(["a", "a.draft", "b"])
    metadata.apply_compaction([file("a")], [], [])
    assert directory.open().garbage() == ["a.draft", "b"]


def test_a_compaction_that_cannot_be_applied_leaves_everything_as_it_was(directory):
    metadata = directory.open()
    metadata.apply_compaction([file("a")], [], [])
    with pytest.raises(StorageFailed, match=r"meta\.db"):
        metadata.apply_compaction([file("b"), file("b")], ["a"], ["wal/1.wal"])
    assert metadata.manifest() == [file("a")]
    assert metadata.garbage() == []


def test_destroyed_keys_leave_no_trace_in_the_files_of_the_database(directory, tmp_path):
    secret = b"wrapped-key-bytes-of-sales"
    metadata = directory.open()
    metadata._connection.execute("PRAGMA journal_mode = WAL")
    metadata.save_wrapped_key(WrappedKey(1, "sales", secret))
    metadata.save_wrapped_key(WrappedKey(2, "shop", b"other"))
    metadata.destroy_wrapped_keys("sales")
    assert metadata.wrapped_keys() == [WrappedKey(1, "sales", None), WrappedKey(2, "shop", b"other")]
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_newer_database_is_refused(directory):
    directory.open()._connection.execute("UPDATE format SET version = ?", (METADATA_VERSION + 1,))
    with pytest.raises(FormatTooNew, match="upgrade Sealane"):
        directory.open()


VERSION_1 = """
CREATE TABLE format (version INTEGER NOT NULL);
CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE keys (key TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL, expires_us INTEGER)
    WITHOUT ROWID;
CREATE TABLE trims (domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER, messages_before INTEGER NOT NULL,
    PRIMARY KEY (domain, topic, incarnation, partition)) WITHOUT ROWID;
CREATE TABLE drops (domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER,
    PRIMARY KEY (domain, topic, incarnation, partition)) WITHOUT ROWID;
CREATE TABLE compacted (name TEXT PRIMARY KEY, domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER,
    kind INTEGER NOT NULL, generation INTEGER NOT NULL, sealed INTEGER NOT NULL, bytes INTEGER NOT NULL,
    base INTEGER NOT NULL, stop INTEGER NOT NULL, places BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE domain_keys (key_id INTEGER PRIMARY KEY, domain TEXT NOT NULL, wrapped BLOB);
CREATE TABLE master_key (check_value BLOB NOT NULL);
INSERT INTO format VALUES (1);
INSERT INTO counters VALUES ('boot', 41), ('version', 7);
INSERT INTO keys VALUES ('topics/orders', x'01', 7, NULL);
INSERT INTO trims VALUES ('default', 'orders', 1, 0, 100);
INSERT INTO domain_keys VALUES (1, 'default', x'aabb');
INSERT INTO master_key VALUES (x'cc');
"""


def test_a_version_1_database_is_upgraded_and_keeps_all_it_knew(directory):
    with sqlite3.connect(directory.path) as old:
        old.executescript(VERSION_1)
    old.close()
    for metadata in (directory.open(), directory.open()):
        assert metadata.trims() == {ORDERS: Trim(100, 0)}
        assert metadata.get("topics/orders") == (b"\x01", 7, None)
        assert metadata.wrapped_keys() == [WrappedKey(1, "default", b"\xaa\xbb")]
        assert metadata.key_check() == b"\xcc"
        assert metadata.garbage() == []
    metadata = directory.open()
    assert metadata.boot() == 42
    assert metadata.put("new", b"", expected=0) == 8
    metadata.save_trim(ORDERS, Trim(100, 9))
    assert metadata.trims() == {ORDERS: Trim(100, 9)}


def test_a_version_2_database_is_upgraded_and_does_not_know_how_old_its_keys_are(directory):
    with sqlite3.connect(directory.path) as old:
        old.executescript(VERSION_1)
        UPGRADES[1](old)
        old.execute("UPDATE format SET version = 2")
    old.close()
    for metadata in (directory.open(), directory.open()):
        assert metadata.wrapped_keys() == [WrappedKey(1, "default", b"\xaa\xbb")]
        assert metadata.keys_made_us() == {}
    metadata.save_wrapped_key(WrappedKey(2, "default", b"new"))
    assert directory.open().keys_made_us() == {2: directory.clock.now_us}


def test_retired_keys_leave_no_trace_in_the_files_of_the_database(directory, tmp_path):
    secret = b"wrapped-key-bytes-of-sales"
    metadata = directory.open()
    metadata._connection.execute("PRAGMA journal_mode = WAL")
    metadata.save_wrapped_key(WrappedKey(1, "sales", secret))
    metadata.save_wrapped_key(WrappedKey(2, "sales", b"newer"))
    metadata.retire_wrapped_keys([1])
    assert metadata.wrapped_keys() == [WrappedKey(2, "sales", b"newer")]
    assert all(secret not in path.read_bytes() for path in tmp_path.iterdir())


def test_keys_are_wrapped_anew_together_with_the_check_value(directory, tmp_path):
    metadata = directory.open()
    metadata._connection.execute("PRAGMA journal_mode = WAL")
    metadata.save_key_check(b"old")
    metadata.save_wrapped_key(WrappedKey(1, "sales", b"wrapped-by-the-old-one"))
    metadata.save_wrapped_key(WrappedKey(2, "shop", None))
    metadata.rewrap_keys([WrappedKey(1, "sales", b"wrapped-by-the-new-one")], b"new")
    again = directory.open()
    assert again.wrapped_keys() == [WrappedKey(1, "sales", b"wrapped-by-the-new-one"), WrappedKey(2, "shop", None)]
    assert again.key_check() == b"new"
    assert all(b"wrapped-by-the-old-one" not in path.read_bytes() for path in tmp_path.iterdir())


def test_a_value_in_other_bytes_keeps_its_version_unless_it_was_changed(directory):
    metadata = directory.open()
    version = metadata.put("k", b"one", expected=0)
    metadata.replace_value("k", b"two", version=version)
    assert metadata.get("k") == (b"two", version, None)
    newer = metadata.put("k", b"three", expected=version)
    metadata.replace_value("k", b"four", version=version)
    assert metadata.get("k") == (b"three", newer, None)


def test_a_format_from_which_no_upgrade_exists_is_an_error(directory):
    directory.open()._connection.execute("UPDATE format SET version = 0")
    with pytest.raises(StorageFailed, match="no upgrade exists"):
        directory.open()
