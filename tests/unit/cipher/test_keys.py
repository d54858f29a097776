"""A receiver's key pair as files."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.asymmetric.rsa import generate_private_key

from sealane.cipher.keys import (
    KEY_BITS,
    KEY_FILE_BYTES_MAX,
    fingerprint,
    needs_passphrase,
    new_key,
    public_pem,
    read_private_key,
    read_public_key,
    write_pair,
)
from sealane.errors import AlreadyExists, InvalidArgument
from sealane.security.envelopes import PrivateKey
from tests.unit.cipher.sealed import key


def test_a_pair_is_written_and_read(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "keys" / "billing", key())
    assert [path.name for path in files] == ["billing.key", "billing.pub"]
    assert stat.S_IMODE(files.private.stat().st_mode) == 0o600
    assert stat.S_IMODE(files.public.stat().st_mode) == 0o644
    assert stat.S_IMODE(files.private.parent.stat().st_mode) == 0o700
    assert read_private_key(files.private).private_numbers() == key().private_numbers()
    assert read_public_key(files.public).public_numbers() == key().public_key().public_numbers()


@pytest.mark.parametrize("bits", KEY_BITS)
def test_a_key_has_the_length_that_is_asked_for(bits: int) -> None:
    assert key(bits=bits).key_size == bits


@pytest.mark.parametrize("bits", [0, 1024, 2047, 8192])
def test_other_lengths_are_refused(bits: int) -> None:
    with pytest.raises(InvalidArgument, match="2,048, 3,072, 4,096 bits"):
        new_key(bits)


def test_a_name_with_dots_keeps_them(tmp_path: Path) -> None:
    assert write_pair(tmp_path / "billing.v2", key()).private.name == "billing.v2.key"


@pytest.mark.parametrize("there", ["billing.key", "billing.pub"])
def test_nothing_is_written_over_and_no_half_pair_is_left(there: str, tmp_path: Path) -> None:
    (tmp_path / there).write_text("mine")
    with pytest.raises(AlreadyExists, match="it is not written over"):
        write_pair(tmp_path / "billing", key())
    assert [path.name for path in tmp_path.iterdir()] == [there]
    assert (tmp_path / there).read_text() == "mine"


def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "billing.key").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(AlreadyExists):
        write_pair(tmp_path / "billing", key())
    assert not (tmp_path / "elsewhere").exists()


def test_a_passphrase_protects_the_private_key(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "careful", key(), "open sesame")
    assert needs_passphrase(files.private)
    assert read_private_key(files.private, "open sesame").key_size == 2048
    with pytest.raises(InvalidArgument, match="needs its passphrase"):
        read_private_key(files.private)
    with pytest.raises(InvalidArgument, match="the passphrase is not the right one"):
        read_private_key(files.private, "open poppy")


def test_a_passphrase_for_a_key_without_one_is_told(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "plain", key())
    assert not needs_passphrase(files.private)
    with pytest.raises(InvalidArgument, match="is not under a passphrase"):
        read_private_key(files.private, "open sesame")


def test_the_halves_are_not_taken_for_each_other(tmp_path: Path) -> None:
    files = write_pair(tmp_path / "billing", key())
    with pytest.raises(InvalidArgument, match="stays with the receiver"):
        read_public_key(files.private)
    with pytest.raises(InvalidArgument, match="decrypts nothing"):
        read_private_key(files.public)


def test_keys_of_other_kinds_and_lengths_are_told_from_those_that_are_used(tmp_path: Path) -> None:
    pem, pkcs8, plain = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    for made, problem in (
        (generate_private_key(65_537, 1024), "is RSA of 1,024 bits"),
        (Ed25519PrivateKey.generate(), "is a key of another kind"),
    ):
        (tmp_path / "private").write_bytes(made.private_bytes(pem, pkcs8, plain))
        (tmp_path / "public").write_bytes(made.public_key().public_bytes(pem, spki))
        with pytest.raises(InvalidArgument, match=problem):
            read_private_key(tmp_path / "private")
        with pytest.raises(InvalidArgument, match=problem):
            read_public_key(tmp_path / "public")


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "in PEM"),
        (b"no key at all", "in PEM"),
        (bytes(KEY_FILE_BYTES_MAX), "in PEM"),
        (bytes(KEY_FILE_BYTES_MAX + 1), "so it is no key"),
    ],
)
def test_what_is_no_key_is_told_with_its_file(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    for read in (read_private_key, read_public_key):
        with pytest.raises(InvalidArgument, match=problem) as refused:
            read(tmp_path / "file")
        assert str(tmp_path / "file") in str(refused.value)
    with pytest.raises(InvalidArgument, match="cannot be read: No such file"):
        read_public_key(tmp_path / "missing")


def test_its_fingerprint_is_the_one_that_other_commands_show() -> None:
    known = PrivateKey.from_pem(
        key().private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    assert fingerprint(key().public_key()) == known.public.fingerprint
    assert public_pem(key().public_key()).decode() == known.public.pem()
