"""The master key is exchanged for another one without a moment in which a crash would leave none that is right."""

from __future__ import annotations

import os
import random
from contextlib import suppress
from typing import NamedTuple

import pytest

from sealane.engine.local.metadata import Metadata
from sealane.errors import KeyUnavailable, StorageError
from sealane.security.at_rest.keys import Keyring
from sealane.security.at_rest.master_key import (
    MASTER_KEY_FILE,
    NEXT_MASTER_KEY_FILE,
    check_value,
    is_right,
    parse_master_key,
)
from tests.simulation.disk import DiskFault, DiskFaultKind, SimDisk, SimFiles
from tests.simulation.ends import Crashed


def written() -> SimDisk:
    """A disk with the keys of two domains."""
    disk = SimDisk(random.Random(1))
    life = opened(disk)
    for domain in ("sales", "shop"):
        life.ring.ensure(domain)
    life.metadata.close()
    return disk


class Life(NamedTuple):
    ring: Keyring
    metadata: Metadata
    files: SimFiles

    def rotate(self) -> None:
        self.ring.rotate_master(self.files)


def opened(disk: SimDisk) -> Life:
    files = disk.mount()
    metadata = Metadata(files.database("meta.db"), lambda: 0)
    return Life(Keyring.open(files, metadata, os.urandom), metadata, files)


def keys_of(ring: Keyring) -> dict[str, tuple[int, bytes]]:
    return {domain: ring.sealing_key(domain) for domain in ring.by_domain()}


def operations_of_a_rotation() -> int:
    disk = written()
    life = opened(disk)
    before = disk.operations
    life.rotate()
    return disk.operations - before


OPERATIONS = operations_of_a_rotation()


def test_every_key_stays_what_it_was_and_the_old_file_opens_none_of_them():
    disk = written()
    life = opened(disk)
    keys, old = keys_of(life.ring), disk.secrets[MASTER_KEY_FILE]
    life.rotate()
    assert keys_of(life.ring) == keys
    new = disk.secrets[MASTER_KEY_FILE]
    assert new != old
    assert NEXT_MASTER_KEY_FILE not in disk.secrets
    life.ring.ensure("made after it")
    life = opened(disk)
    assert keys_of(life.ring).items() >= keys.items()
    with pytest.raises(KeyUnavailable, match="does not open with this master key"):
        Keyring(parse_master_key(old, "old"), life.metadata, os.urandom)
    disk.secrets[MASTER_KEY_FILE] = old
    with pytest.raises(KeyUnavailable, match="is not the key that sealed the data"):
        opened(disk)
    disk.close()


@pytest.mark.parametrize("kind", ["crash_before", "crash_after"])
@pytest.mark.parametrize("operation", range(1, OPERATIONS + 1))
def test_a_crash_at_any_operation_leaves_the_old_key_or_the_new_one(kind: DiskFaultKind, operation: int):
    disk = written()
    life = opened(disk)
    keys = keys_of(life.ring)
    disk.arm(DiskFault(kind, disk.operations + operation))
    with suppress(Crashed):
        life.rotate()
    disk.disarm()
    disk.lose_power()
    for _ in range(2):
        life = opened(disk)
        assert keys_of(life.ring) == keys
        assert NEXT_MASTER_KEY_FILE not in disk.secrets
        life.rotate()
        assert keys_of(life.ring) == keys
    disk.close()


@pytest.mark.parametrize("operation", range(1, OPERATIONS + 1))
def test_a_disk_that_fails_meanwhile_costs_no_key(operation: int):
    disk = written()
    life = opened(disk)
    keys = keys_of(life.ring)
    disk.arm(DiskFault("write_error", disk.operations + operation))
    with suppress(OSError, StorageError):
        life.rotate()
    disk.disarm()
    # A key that is made now is wrapped by what the next start opens, or is refused.
    with suppress(KeyUnavailable):
        life.ring.ensure("made after it")
    assert keys_of(opened(disk).ring).items() >= keys.items()
    disk.close()


@pytest.mark.parametrize("text", [None, b"garbage"])
def test_it_is_not_exchanged_while_its_file_is_missing_or_wrong(text: bytes | None):
    disk = written()
    life = opened(disk)
    disk.secrets.pop(MASTER_KEY_FILE)
    if text is not None:
        disk.secrets[MASTER_KEY_FILE] = text
    with pytest.raises(KeyUnavailable, match="sealane key restore"):
        life.rotate()
    disk.close()


def test_a_wrong_key_beside_the_right_one_is_removed_and_one_beside_a_wrong_one_is_left():
    disk = written()
    right = disk.secrets[MASTER_KEY_FILE]
    known = opened(disk).metadata.key_check()
    assert known is not None
    disk.secrets[NEXT_MASTER_KEY_FILE] = b"garbage"
    opened(disk)
    assert NEXT_MASTER_KEY_FILE not in disk.secrets
    disk.secrets[MASTER_KEY_FILE] = b"garbage"
    disk.secrets[NEXT_MASTER_KEY_FILE] = b"more garbage"
    with pytest.raises(KeyUnavailable):
        opened(disk)
    assert disk.secrets[NEXT_MASTER_KEY_FILE] == b"more garbage"
    assert is_right(right, known)
    assert check_value(parse_master_key(right, "")) == known
    assert not is_right(b"garbage", known)
    disk.close()
