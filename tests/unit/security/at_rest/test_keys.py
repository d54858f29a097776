"""The master key is made once, checked before anything is served, and never replaced behind anyone's back."""

from __future__ import annotations

import os
import sqlite3

import pytest

from sealane.engine.local.metadata import Metadata
from sealane.errors import KeyUnavailable
from sealane.security.at_rest.keys import (
    KEY_ID_MAX,
    MASTER_KEY_FILE,
    Keyring,
    WrappedKey,
    load_master_key,
    master_key_text,
    parse_master_key,
)


class SecretsInMemory:
    location = "/data"

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}

    def read_secret(self, name: str) -> bytes | None:
        return self.files.get(name)

    def write_secret(self, name: str, data: bytes) -> None:
        assert name not in self.files
        self.files[name] = data


@pytest.fixture
def secrets():
    return SecretsInMemory()


@pytest.fixture
def store():
    metadata = Metadata(sqlite3.connect(":memory:"), lambda: 0)
    yield metadata
    metadata.close()


def test_a_new_directory_gets_a_random_master_key_that_is_found_again(secrets, store):
    first = load_master_key(secrets, store, os.urandom)
    assert len(first) == 32
    assert load_master_key(secrets, store, os.urandom) == first


def test_the_key_file_says_what_it_is_and_reads_back(secrets, store):
    key = load_master_key(secrets, store, os.urandom)
    text = secrets.files[MASTER_KEY_FILE]
    assert text.startswith(b"sealane master key")
    assert parse_master_key(text, "f") == key


def test_a_crash_between_the_key_file_and_its_check_value_keeps_the_key(secrets, store):
    key = os.urandom(32)
    secrets.write_secret(MASTER_KEY_FILE, master_key_text(key))
    assert load_master_key(secrets, store, os.urandom) == key
    assert store.key_check() is not None


def test_a_missing_key_is_named_and_never_replaced(secrets, store):
    load_master_key(secrets, store, os.urandom)
    secrets.files.clear()
    with pytest.raises(KeyUnavailable, match=r"/data/master.key is missing.*restore it"):
        load_master_key(secrets, store, os.urandom)
    assert secrets.files == {}


def test_a_wrong_key_is_refused_by_name(secrets, store):
    load_master_key(secrets, store, os.urandom)
    secrets.files[MASTER_KEY_FILE] = master_key_text(os.urandom(32))
    with pytest.raises(KeyUnavailable, match=r"/data/master.key is not the key that sealed the data"):
        load_master_key(secrets, store, os.urandom)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"", "not a Sealane master key file"),
        (b"hello\n", "not a Sealane master key file"),
        (master_key_text(bytes(32)).replace(b"key 00", b"key 01"), "checksum"),
        (master_key_text(bytes(32)).rstrip() + b"\xff\n", "checksum"),
        (master_key_text(bytes(32))[:60], "not a Sealane master key file"),
        (master_key_text(bytes(31)), "32-byte key"),
        (b"\xff\xfe\x00", "not a Sealane master key file"),
    ],
)
def test_a_damaged_key_file_says_what_is_wrong_with_it(text, problem):
    with pytest.raises(KeyUnavailable, match=problem):
        parse_master_key(text, "master.key")


def test_a_domain_key_is_stored_wrapped_and_before_its_first_use(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    key_id = ring.ensure("sales")
    (stored,) = store.wrapped_keys()
    assert (stored.key_id, stored.domain) == (key_id, "sales")
    assert ring.opening_key("sales", key_id) not in (stored.wrapped or b"")
    assert ring.ensure("sales") == key_id


def test_reopening_finds_the_same_domain_keys(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    sales, shop = ring.ensure("sales"), ring.ensure("shop")
    again = Keyring.open(secrets, store, os.urandom)
    assert again.sealing_key("sales") == ring.sealing_key("sales")
    assert again.opening_key("shop", shop) == ring.opening_key("shop", shop)
    assert sales != shop


def test_after_a_rotation_the_new_key_seals_and_the_old_one_still_opens(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    old = ring.ensure("sales")
    new = ring.rotate("sales")
    assert new > old
    for keys in (ring, Keyring.open(secrets, store, os.urandom)):
        assert keys.sealing_key("sales")[0] == new
        assert keys.opening_key("sales", old) != keys.opening_key("sales", new)


def test_a_destroyed_domain_never_opens_again_but_can_start_anew(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    old = ring.ensure("sales")
    ring.ensure("shop")
    ring.destroy("sales")
    for keys in (ring, Keyring.open(secrets, store, os.urandom)):
        with pytest.raises(KeyUnavailable, match="'sales' were destroyed"):
            keys.opening_key("sales", old)
        with pytest.raises(KeyUnavailable, match="'sales'"):
            keys.sealing_key("sales")
        keys.sealing_key("shop")
    assert ring.ensure("sales") not in (old, ring.ensure("shop"))


def test_a_key_opens_only_its_own_domain(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    key_id = ring.ensure("sales")
    ring.ensure("shop")
    with pytest.raises(KeyUnavailable, match="'shop' has no key"):
        ring.opening_key("shop", key_id)


def test_a_wrapped_key_moved_to_another_domain_is_refused(secrets, store):
    ring = Keyring.open(secrets, store, os.urandom)
    ring.ensure("sales")
    master, (stored,) = ring.transfer()
    with pytest.raises(KeyUnavailable, match="key table was damaged"):
        Keyring(master, store, os.urandom, keys=[stored._replace(domain="shop")])


def test_key_ids_end_at_the_largest_that_fits_their_field(secrets, store):
    master = load_master_key(secrets, store, os.urandom)
    ring = Keyring(master, store, os.urandom, keys=[WrappedKey(KEY_ID_MAX - 1, "old", None)])
    assert ring.ensure("sales") == KEY_ID_MAX
    with pytest.raises(KeyUnavailable, match="no key ids are left"):
        ring.ensure("shop")
