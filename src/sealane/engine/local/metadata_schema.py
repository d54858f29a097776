"""The tables of `meta.db`, their version, and the steps from each older version to the next."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from sealane.errors import FormatTooNew, StorageFailed

METADATA_VERSION = 4

_TABLES = (
    "CREATE TABLE format (version INTEGER NOT NULL)",
    # One row a counter. 'version' is shared by all keys, so that no version of any key ever repeats.
    "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE keys (key TEXT PRIMARY KEY, data BLOB NOT NULL, version INTEGER NOT NULL, expires_us INTEGER)"
    " WITHOUT ROWID",
    "CREATE TABLE trims (domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER,"
    " messages_before INTEGER NOT NULL, journal_before INTEGER NOT NULL, journal_folded INTEGER NOT NULL,"
    " PRIMARY KEY (domain, topic, incarnation, partition)) WITHOUT ROWID",
    "CREATE TABLE drops (domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER,"
    " PRIMARY KEY (domain, topic, incarnation, partition)) WITHOUT ROWID",
    "CREATE TABLE compacted (name TEXT PRIMARY KEY, domain TEXT, topic TEXT, incarnation INTEGER, partition INTEGER,"
    " kind INTEGER NOT NULL, generation INTEGER NOT NULL, sealed INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " base INTEGER NOT NULL, stop INTEGER NOT NULL, places BLOB NOT NULL) WITHOUT ROWID",
    # What still has to be deleted from disk once the transaction that made it superfluous is durable.
    "CREATE TABLE garbage (name TEXT PRIMARY KEY) WITHOUT ROWID",
    "CREATE TABLE domain_keys (key_id INTEGER PRIMARY KEY, domain TEXT NOT NULL, wrapped BLOB, made_us INTEGER)",
    "CREATE TABLE master_key (check_value BLOB NOT NULL)",
)


def _upgrade_1(connection: sqlite3.Connection) -> None:
    """Version 1 trimmed messages only, and deleted superseded files without noting them first."""
    connection.execute("ALTER TABLE trims ADD COLUMN journal_before INTEGER NOT NULL DEFAULT 0")
    connection.execute("CREATE TABLE garbage (name TEXT PRIMARY KEY) WITHOUT ROWID")


def _upgrade_2(connection: sqlite3.Connection) -> None:
    """Version 2 did not note when a domain's key was made."""
    connection.execute("ALTER TABLE domain_keys ADD COLUMN made_us INTEGER")


def _upgrade_3(connection: sqlite3.Connection) -> None:
    """Version 3 forgot a journal up to its last snapshot, so that its first entry was the one to begin with."""
    connection.execute("ALTER TABLE trims ADD COLUMN journal_folded INTEGER NOT NULL DEFAULT 0")


UPGRADES: dict[int, Callable[[sqlite3.Connection], None]] = {1: _upgrade_1, 2: _upgrade_2, 3: _upgrade_3}
"""From each older version, the step that leads to the next one. Runs inside one transaction with all that follow."""


def prepare(connection: sqlite3.Connection) -> None:
    """Create the tables in an empty database or bring older ones up to date, inside the caller's transaction."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'format'").fetchone():
        for statement in _TABLES:
            connection.execute(statement)
        connection.execute("INSERT INTO format VALUES (?)", (METADATA_VERSION,))
        return
    row = connection.execute("SELECT version FROM format").fetchone()
    version = row[0] if row else 0
    if version > METADATA_VERSION:
        raise FormatTooNew("meta.db", version, METADATA_VERSION)
    while version < METADATA_VERSION:
        if version not in UPGRADES:
            raise StorageFailed(
                f"meta.db has format {version}, from which no upgrade exists; restore it from your backup"
            )
        UPGRADES[version](connection)
        version += 1
        connection.execute("UPDATE format SET version = ?", (version,))
