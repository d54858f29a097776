"""Which keys stored bytes refer to is read from the first bytes of each body, and from nothing else."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine.local import DiskFiles
from sealane.engine.local.key_use import key_ids_of
from sealane.engine.local.metadata import Metadata
from sealane.security.at_rest.keys import KEY_ID_MAX, Keyring, WrappedKey
from sealane.security.at_rest.sealing import Sealer, key_id_of


@given(ids=st.lists(st.tuples(st.integers(1, KEY_ID_MAX), st.integers(0, 600_000)), min_size=1, max_size=8))
def test_heads_near_and_far_are_found(tmp_path_factory, ids: list[tuple[int, int]]) -> None:
    directory: Path = tmp_path_factory.mktemp("files")
    content = bytearray(b"x" * 7)
    positions = []
    for key_id, gap in ids:
        positions.append(len(content))
        content += b"\x01" + key_id.to_bytes(4, "little") + b"x" * gap
    (directory / "file").write_bytes(content)
    found = key_ids_of(DiskFiles(directory), "file", np.array(positions[::-1]))
    assert found == {key_id for key_id, _ in ids}


def test_a_file_that_was_cut_short_tells_of_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"\x01\x05\x00\x00\x00" + b"\x01\x06\x00")
    assert key_ids_of(DiskFiles(tmp_path), "file", np.array([0, 5, 1_000_000])) == {5}
    assert key_ids_of(DiskFiles(tmp_path), "file", np.zeros(0, dtype=np.int64)) == set()


def test_sealed_bytes_tell_their_key_and_others_do_not() -> None:
    metadata = Metadata(sqlite3.connect(":memory:"), lambda: 0)
    keyring = Keyring(os.urandom(32), metadata, os.urandom, keys=[WrappedKey(70_000, "old", None)])
    sealer = Sealer(keyring, os.urandom)
    key_id = keyring.ensure("sales")
    assert key_id == 70_001
    assert key_id_of(sealer.seal("sales", b"", b"")) == key_id
    for data in (b"", b"{}", b'{"name": "a value that is not sealed, and long enough"}', bytes(100)):
        assert key_id_of(data) is None
    metadata.close()
