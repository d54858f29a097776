"""What the local engine knows besides its logs, in SQLite: small values, trims, drops, compacted files, wrapped keys.

Every public call is one transaction and durable on return. Calls block for about one disk sync when they write.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager

from sealane.engine.contract import PartitionKey, Value
from sealane.engine.local.manifest import CompactedFile, pack_places, unpack_places
from sealane.engine.local.metadata_schema import prepare
from sealane.engine.local.trims import Trim
from sealane.errors import StorageFailed, VersionMismatch
from sealane.log import get_log
from sealane.security.at_rest.keys import WrappedKey

_log = get_log("sealane.engine")

METADATA_NAME = "meta.db"

_HIGHEST_CHARACTER = "\U0010ffff"

_FORGET_PARTITION = (
    "DELETE FROM trims WHERE domain = ? AND topic = ? AND incarnation = ? AND partition = ?",
    "INSERT OR IGNORE INTO garbage "
    "SELECT name FROM compacted WHERE domain = ? AND topic = ? AND incarnation = ? AND partition = ?",
    "DELETE FROM compacted WHERE domain = ? AND topic = ? AND incarnation = ? AND partition = ?",
)


class Metadata:
    """The metadata of one data directory. `clock` gives the time in microseconds. Safe to use from several threads."""

    def __init__(self, connection: sqlite3.Connection, clock: Callable[[], int]) -> None:
        self._connection = connection
        self._clock = clock
        self._lock = threading.RLock()
        # Transactions are begun and ended here, explicitly, never by the driver's guess.
        connection.isolation_level = None
        # What is deleted is overwritten: a destroyed key must not linger in a free page.
        connection.execute("PRAGMA secure_delete = ON")
        with self._transaction():
            prepare(connection)

    def close(self) -> None:
        with self._lock:
            self._connection.close()

    def boot(self) -> int:
        """Count this opening and return its number: 1, 2, 3 … over the life of the directory."""
        with self._transaction():
            return self._next("boot")

    def begin_incarnation(self, boots: int, versions: int) -> None:
        """Go so far ahead with boots and versions that none is met again which the original of a copy has given out."""
        with self._transaction():
            for counter, ahead in (("boot", boots), ("version", versions)):
                self._connection.execute(
                    "INSERT INTO counters VALUES (?, ?) ON CONFLICT DO UPDATE SET value = value + excluded.value",
                    (counter, ahead),
                )

    @contextmanager
    def standing_still(self) -> Iterator[sqlite3.Connection]:
        """A copy in memory, which the caller closes. Nothing changes here until the block ends: keep it short."""
        copy = sqlite3.connect(":memory:", check_same_thread=False)
        try:
            with self._reading():
                self._connection.backup(copy)
                yield copy
        except BaseException:
            copy.close()
            raise

    # --- compare-and-set values ---------------------------------------------------------------------------------

    def get(self, key: str) -> Value | None:
        with self._reading():
            return self._current(key)

    def put(self, key: str, data: bytes, *, expected: int, lease_seconds: float | None = None) -> int:
        now_us = self._clock()
        with self._transaction():
            self._expect(key, expected)
            version = self._next("version")
            expires_us = None if lease_seconds is None else now_us + int(lease_seconds * 1_000_000)
            self._connection.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?, ?)", (key, bytes(data), version, expires_us)
            )
            return version

    def delete(self, key: str, *, expected: int) -> None:
        with self._transaction():
            self._expect(key, expected)
            self._connection.execute("DELETE FROM keys WHERE key = ?", (key,))

    def scan(self, prefix: str) -> list[tuple[str, Value]]:
        with self._reading():
            rows = self._connection.execute(
                "SELECT key, data, version, expires_us FROM keys WHERE key >= ? AND key < ? "
                "AND (expires_us IS NULL OR expires_us > ?) ORDER BY key",
                (prefix, prefix + _HIGHEST_CHARACTER, self._clock()),
            ).fetchall()
        return [(key, Value(data, version, expires_us)) for key, data, version, expires_us in rows]

    def values(self) -> list[tuple[str, Value]]:
        """Every value, expired ones too: what is to be known of all bytes that are stored here."""
        with self._reading():
            rows = self._connection.execute("SELECT key, data, version, expires_us FROM keys ORDER BY key").fetchall()
        return [(key, Value(data, version, expires_us)) for key, data, version, expires_us in rows]

    def replace_value(self, key: str, data: bytes, *, version: int) -> None:
        """Keep the same value in other bytes: its version stays, so nobody who holds it is disturbed.

        Nothing happens if it has changed meanwhile.
        """
        with self._transaction():
            self._connection.execute("UPDATE keys SET data = ? WHERE key = ? AND version = ?", (data, key, version))

    # --- trims and drops ----------------------------------------------------------------------------------------

    def trims(self) -> dict[PartitionKey, Trim]:
        """For each partition that was ever trimmed."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT domain, topic, incarnation, partition, messages_before, journal_before, journal_folded "
                "FROM trims"
            ).fetchall()
        return {PartitionKey(*row[:4]): Trim(*row[4:]) for row in rows}

    def save_trim(self, partition: PartitionKey, trim: Trim) -> None:
        """Never moves backwards: a lower value than the stored one leaves that one as it is."""
        with self._transaction():
            self._connection.execute(
                "INSERT INTO trims VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                "messages_before = max(messages_before, excluded.messages_before), "
                "journal_before = max(journal_before, excluded.journal_before), "
                "journal_folded = max(journal_folded, excluded.journal_folded)",
                (*partition, *trim),
            )

    def dropped(self) -> set[PartitionKey]:
        with self._reading():
            rows = self._connection.execute("SELECT domain, topic, incarnation, partition FROM drops").fetchall()
        return {PartitionKey(*row) for row in rows}

    def save_drop(self, partition: PartitionKey) -> None:
        """Forget the partition: its trim at once, its compacted files with it (they become garbage to delete)."""
        with self._transaction():
            self._connection.execute("INSERT OR IGNORE INTO drops VALUES (?, ?, ?, ?)", partition)
            for statement in _FORGET_PARTITION:
                self._connection.execute(statement, partition)

    def forget_drops(self, partitions: Iterable[PartitionKey]) -> None:
        """Call it once no file holds anything of these dropped partitions, so that the table stays small."""
        with self._transaction():
            self._connection.executemany(
                "DELETE FROM drops WHERE domain = ? AND topic = ? AND incarnation = ? AND partition = ?",
                list(partitions),
            )

    # --- compacted files ----------------------------------------------------------------------------------------

    def manifest(self) -> list[CompactedFile]:
        """Every compacted file in force, ordered by partition, kind and base offset."""
        with self._reading():
            rows = self._connection.execute(
                "SELECT name, domain, topic, incarnation, partition, kind, generation, sealed, bytes, "
                "base, stop, places FROM compacted"
            ).fetchall()
        files = [
            CompactedFile(
                row[0],
                PartitionKey(*row[1:5]),
                row[5],
                row[6],
                bool(row[7]),
                row[8],
                row[9],
                row[10],
                unpack_places(row[11]),
            )
            for row in rows
        ]
        return sorted(files, key=lambda file: (file.partition, file.kind, file.base))

    def begin_compaction(self, names: Iterable[str]) -> None:
        """Announce files that are about to be written: garbage until `apply_compaction` puts them in force."""
        with self._transaction():
            self._connection.executemany("INSERT OR IGNORE INTO garbage VALUES (?)", [(name,) for name in names])

    def apply_compaction(
        self, added: Iterable[CompactedFile], removed: Iterable[str], segments_done: Iterable[str]
    ) -> None:
        """Put new compacted files in force and retire what they replace (compacted files and WAL segments), at once.

        The retired names are garbage from then on: delete them from disk, then call `forget_garbage`.
        """
        retired = list(removed)
        rows = [_manifest_row(file) for file in added]
        with self._transaction():
            self._connection.executemany("DELETE FROM compacted WHERE name = ?", [(name,) for name in retired])
            self._connection.executemany("INSERT INTO compacted VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", rows)
            self._connection.executemany("DELETE FROM garbage WHERE name = ?", [row[:1] for row in rows])
            self._connection.executemany(
                "INSERT OR IGNORE INTO garbage VALUES (?)", [(name,) for name in (*retired, *segments_done)]
            )

    def garbage(self) -> list[str]:
        """Superseded files that may still be on disk, after a crash between the transaction and the deletion."""
        with self._reading():
            return [row[0] for row in self._connection.execute("SELECT name FROM garbage ORDER BY name")]

    def forget_garbage(self, names: Iterable[str]) -> None:
        with self._transaction():
            self._connection.executemany("DELETE FROM garbage WHERE name = ?", [(name,) for name in names])

    # --- keys (the KeyStore of sealane.security.at_rest.keys) ---------------------------------------------------------

    def key_check(self) -> bytes | None:
        with self._reading():
            row = self._connection.execute("SELECT check_value FROM master_key").fetchone()
        return None if row is None else bytes(row[0])

    def save_key_check(self, check: bytes) -> None:
        with self._transaction():
            self._connection.execute("DELETE FROM master_key")
            self._connection.execute("INSERT INTO master_key VALUES (?)", (check,))

    def wrapped_keys(self) -> list[WrappedKey]:
        with self._reading():
            rows = self._connection.execute(
                "SELECT key_id, domain, wrapped FROM domain_keys ORDER BY key_id"
            ).fetchall()
        return [WrappedKey(*row) for row in rows]

    def save_wrapped_key(self, key: WrappedKey) -> None:
        with self._transaction():
            self._connection.execute("INSERT INTO domain_keys VALUES (?, ?, ?, ?)", (*key, self._clock()))

    def keys_made_us(self) -> dict[int, int]:
        """When each domain key was made, by its id; those that an older version made are not in it."""
        with self._reading():
            rows = self._connection.execute("SELECT key_id, made_us FROM domain_keys WHERE made_us IS NOT NULL")
            return dict(rows.fetchall())

    def destroy_wrapped_keys(self, domain: str) -> None:
        """Erase the domain's keys; their ids stay taken."""
        with self._transaction():
            self._connection.execute("UPDATE domain_keys SET wrapped = NULL WHERE domain = ?", (domain,))
        self._empty_log()

    def retire_wrapped_keys(self, key_ids: Collection[int]) -> None:
        """Erase keys that seal nothing any more. Newer ones are there, so that no id is given out again."""
        with self._transaction():
            self._connection.executemany("DELETE FROM domain_keys WHERE key_id = ?", [(each,) for each in key_ids])
        self._empty_log()

    def rewrap_keys(self, keys: Iterable[WrappedKey], check: bytes) -> None:
        """Put other wrappings in the place of those that are stored, and another check value, all or nothing."""
        with self._transaction():
            self._connection.executemany(
                "UPDATE domain_keys SET wrapped = ? WHERE key_id = ?", [(key.wrapped, key.key_id) for key in keys]
            )
            self._connection.execute("UPDATE master_key SET check_value = ?", (check,))
        self._empty_log()

    # --- inside -------------------------------------------------------------------------------------------------

    def _empty_log(self) -> None:
        """SQLite's own log still holds pages as they were: fold it into the database and empty it."""
        with self._reading():
            busy = self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy is not None and busy[0]:
            _log.warning("someone reads meta.db: keys that were erased leave its log when the node restarts at latest")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            try:
                self._connection.execute("BEGIN IMMEDIATE")
                try:
                    yield
                    self._connection.commit()
                except BaseException:
                    self._connection.rollback()
                    raise
            except sqlite3.Error as error:
                raise _failure(error) from error

    @contextmanager
    def _reading(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except sqlite3.Error as error:
                raise _failure(error) from error

    def _next(self, counter: str) -> int:
        row = self._connection.execute(
            "INSERT INTO counters VALUES (?, 1) ON CONFLICT DO UPDATE SET value = value + 1 RETURNING value", (counter,)
        ).fetchone()
        return int(row[0])

    def _current(self, key: str) -> Value | None:
        row = self._connection.execute(
            "SELECT data, version, expires_us FROM keys WHERE key = ? AND (expires_us IS NULL OR expires_us > ?)",
            (key, self._clock()),
        ).fetchone()
        return None if row is None else Value(*row)

    def _expect(self, key: str, expected: int) -> None:
        current = self._current(key)
        actual = 0 if current is None else current.version
        if actual != expected:
            raise VersionMismatch(key, expected, actual)


def _manifest_row(file: CompactedFile) -> tuple[object, ...]:
    return (
        file.name,
        *file.partition,
        file.kind,
        file.generation,
        int(file.sealed),
        file.file_bytes,
        file.base,
        file.stop,
        pack_places(file.places),
    )


def _failure(error: sqlite3.Error) -> StorageFailed:
    return StorageFailed(f"meta.db cannot be read or written ({error}); check the disk, then restart")
