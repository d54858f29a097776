"""What is sealed opens only unchanged, in its own place, under its own domain's key."""

from __future__ import annotations

import os
import sqlite3

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from hypothesis import given
from hypothesis import strategies as st

from sealane.engine.local.metadata import Metadata
from sealane.errors import CorruptData, FormatTooNew, KeyUnavailable
from sealane.security.at_rest.keys import Keyring
from sealane.security.at_rest.sealing import OVERHEAD_BYTES, Sealer


def _sealer() -> Sealer:
    sealer = Sealer(Keyring(os.urandom(32), Metadata(sqlite3.connect(":memory:"), lambda: 0), os.urandom), os.urandom)
    sealer.ensure("sales")
    return sealer


SEALER = _sealer()


@given(st.binary(max_size=2000), st.binary(max_size=60))
def test_what_was_sealed_opens_to_the_same_bytes(plain, associated):
    sealed = SEALER.seal("sales", plain, associated)
    assert len(sealed) == len(plain) + OVERHEAD_BYTES
    assert SEALER.open("sales", sealed, associated) == plain
    assert SEALER.open("sales", bytes(sealed), associated) == plain
    assert SEALER.open("sales", memoryview(b"xx" + bytes(sealed))[2:], associated) == plain


@given(st.binary(max_size=2000), st.binary(max_size=60))
def test_what_was_sealed_opens_in_its_own_memory(plain, associated):
    sealed = memoryview(bytearray(SEALER.seal("sales", plain, associated)))
    opened = SEALER.open_in_place("sales", sealed, associated)
    assert opened == plain
    assert opened.readonly
    assert opened.obj is sealed.obj


def test_what_does_not_open_in_place_is_corrupt():
    sealed = memoryview(bytearray(SEALER.seal("sales", b"x" * 100, b"here")))
    with pytest.raises(CorruptData, match="authentication tag"):
        SEALER.open_in_place("sales", sealed, b"there")
    with pytest.raises(CorruptData, match="too short"):
        SEALER.open_in_place("sales", sealed[: OVERHEAD_BYTES - 1], b"here")


def test_a_memoryview_can_be_sealed():
    assert SEALER.open("sales", SEALER.seal("sales", memoryview(b"abc"), b""), b"") == b"abc"


@given(st.data())
def test_any_single_flipped_bit_is_noticed(data):
    sealed = bytearray(SEALER.seal("sales", b"some payload", b"place"))
    bit = data.draw(st.integers(0, len(sealed) * 8 - 1))
    sealed[bit // 8] ^= 1 << bit % 8
    with pytest.raises((CorruptData, KeyUnavailable, FormatTooNew)):
        SEALER.open("sales", bytes(sealed), b"place")


def test_sealed_bytes_do_not_open_in_another_place():
    sealed = SEALER.seal("sales", b"x", b"orders 0 at 17")
    with pytest.raises(CorruptData, match="authentication tag"):
        SEALER.open("sales", sealed, b"orders 0 at 18")


@pytest.mark.parametrize("length", [0, 1, OVERHEAD_BYTES - 1])
def test_bytes_too_short_to_be_sealed_are_corrupt(length):
    with pytest.raises(CorruptData, match="too short"):
        SEALER.open("sales", bytes(SEALER.seal("sales", b"", b""))[:length], b"")


def test_an_unknown_newer_seal_asks_for_an_upgrade():
    sealed = b"\x02" + bytes(SEALER.seal("sales", b"x", b""))[1:]
    with pytest.raises(FormatTooNew):
        SEALER.open("sales", sealed, b"")


def test_the_same_bytes_are_sealed_differently_each_time():
    assert bytes(SEALER.seal("sales", b"x", b"")) != bytes(SEALER.seal("sales", b"x", b""))


def test_a_domain_without_a_key_cannot_be_sealed():
    with pytest.raises(KeyUnavailable, match="'unknown'"):
        SEALER.seal("unknown", b"x", b"")


def test_the_layout_is_what_the_documentation_says():
    sealed = bytes(SEALER.seal("sales", b"payload", b"place"))
    key_id, domain_key = SEALER.keyring.sealing_key("sales")
    assert sealed[:5] == b"\x01" + key_id.to_bytes(4, "little")
    key = HKDF(hashes.SHA256(), 32, sealed[5:21], b"sealane batch v1").derive(domain_key)
    assert AESGCM(key).decrypt(bytes(12), sealed[21:], b"place") == b"payload"
