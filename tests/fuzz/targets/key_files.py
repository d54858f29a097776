"""Master keys as files: the one beside the data, and backups of it. Disks rot, and people edit."""

from __future__ import annotations

import hashlib
import random

from sealane.errors import FormatTooNew, KeyUnavailable
from sealane.security.at_rest.key_backup import make_backup, open_backup, read_backup
from sealane.security.at_rest.master_key import KEY_BYTES, is_right, master_key_text, parse_master_key
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

_KEY = bytes(range(KEY_BYTES))
SEEDS = (
    master_key_text(_KEY),
    make_backup(_KEY, None, made_us=1_760_000_000_000_000, entropy=lambda size: hashlib.shake_256(b"f").digest(size)),
)
_spoil_json = spoil_json()


def check(data: bytes) -> bool:
    return _is_key_file(data) or _is_backup(data)


def _is_key_file(data: bytes) -> bool:
    is_right(data, bytes(16))
    try:
        return len(parse_master_key(data, "master.key")) == KEY_BYTES
    except KeyUnavailable:
        return False


def _is_backup(data: bytes) -> bool:
    try:
        backup = read_backup(data, "backup")
        if backup.has_passphrase:
            return True  # Opening one is slow, on purpose.
        return len(open_backup(backup, None, "backup")) == KEY_BYTES
    except (KeyUnavailable, FormatTooNew):
        return False


def spoil(data: bytes, choose: random.Random) -> bytes:
    return _spoil_json(data, choose) if data[:1] == b"{" else mutate(data, choose)


TARGET = Target("key_files", SEEDS, check, spoil)
