"""The master key of a data directory from outside: copying it to a backup, and putting it back.

Both work on the files of the node's machine, whether a node runs there or not, so that the key never travels.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

from sealane.engine.local.files import DiskFiles
from sealane.engine.local.metadata import METADATA_NAME
from sealane.errors import AlreadyExists, CorruptData, KeyUnavailable, StorageError
from sealane.security.at_rest.key_backup import make_backup, open_backup, read_backup
from sealane.security.at_rest.master_key import (
    MASTER_KEY_FILE,
    is_right,
    master_key_text,
    parse_master_key,
    read_master_key,
)
from sealane.whole_files import sync

_ASIDE = "master.key.replaced-"
"""In front of a number: key files that were found in the place of the right one, which nobody throws away unasked."""


def back_up_key(
    data: Path, target: Path, passphrase: str | None, *, made_us: int, entropy: Callable[[int], bytes] = os.urandom
) -> None:
    """Write the master key of a data directory to a new file that its owner alone may read (0600), durably.

    `KeyUnavailable` if the key is not there or not the right one: a backup of it would be worth nothing.
    `AlreadyExists` if there is a file of that name.
    """
    files, known = _look(data)
    text = read_master_key(files, known)
    where = f"{data / MASTER_KEY_FILE}"
    if text is None or not is_right(text, known):
        problem = "is missing" if text is None else "is not the key that sealed the data here"
        raise KeyUnavailable(f"{where} {problem}, so there is nothing worth keeping; put the right one back first")
    content = make_backup(parse_master_key(text, where), passphrase, made_us=made_us, entropy=entropy)
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    except FileExistsError:
        raise AlreadyExists("file", str(target), "a backup never takes the place of another one") from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        target.unlink(missing_ok=True)
        raise
    sync(target.absolute().parent)


def needs_passphrase(backup: Path) -> bool:
    return read_backup(backup.read_bytes(), str(backup)).has_passphrase


def restore_key(data: Path, backup: Path, passphrase: str | None) -> Path | None:
    """Put the master key back where it belongs. Returns where the file went that was in its place, if there was one.

    Refuses a key that did not seal the data there (`KeyUnavailable`), and to do anything where the right one is in its
    place (`AlreadyExists`).
    """
    files, known = _look(data)
    where = str(data / MASTER_KEY_FILE)
    if is_right(read_master_key(files, known), known):
        raise AlreadyExists("master key", where, "it is the right one, so there is nothing to restore")
    content = read_backup(backup.read_bytes(), str(backup))
    if content.check != known.hex():
        raise KeyUnavailable(
            f"{backup} is not of the key that seals the data in {str(data)!r}: it is of another directory, or older "
            "than the last `sealane key rotate --master`"
        )
    text = master_key_text(open_backup(content, passphrase, str(backup)))
    aside = None
    if files.read_secret(MASTER_KEY_FILE) is not None:
        aside = next(path for number in range(1, 1_000) if not (path := data / f"{_ASIDE}{number}").exists())
        files.rename_secret(MASTER_KEY_FILE, aside.name)
    files.write_secret(MASTER_KEY_FILE, text)
    return aside


def _look(data: Path) -> tuple[DiskFiles, bytes]:
    """The directory's files, and the check value of its key."""
    path = data / METADATA_NAME
    if not path.is_file():
        raise StorageError(f"{str(data)!r} is not a Sealane data directory: there is no {METADATA_NAME}")
    # Without a log beside it nobody has it open; told so, SQLite leaves no files of its own behind.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        connection = sqlite3.connect(f"file:{quote(str(path.absolute()))}?{how}", uri=True)
        try:
            row = connection.execute("SELECT check_value FROM master_key").fetchone()
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise CorruptData(f"{path} cannot be read: {error}") from error
    if row is None:
        raise KeyUnavailable(f"{str(data)!r} has no master key yet: a node that starts there makes one")
    return DiskFiles(data, create=False), bytes(row[0])
