"""Keys of recipients, and messages that are sealed for them, as a user has them at the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest

from tests.integration.cli.shell import Shell


def keygen(shell: Shell, directory: Path, name: str, *options: str) -> str:
    made = shell.json("recipient", "keygen", name, "--out", str(directory), "--json", *options)
    fingerprint: str = made["fingerprint"]
    return fingerprint


def test_from_a_key_pair_to_an_opened_message(shell: Shell, tmp_path: Path) -> None:
    fingerprint = keygen(shell, tmp_path, "billing")
    assert stat.S_IMODE((tmp_path / "billing.key").stat().st_mode) == 0o600
    public, private = str(tmp_path / "billing.pub"), str(tmp_path / "billing.key")
    assert fingerprint in shell.text("recipient", "register", "billing", "--public-key", public, "--comment", "hall 3")
    assert fingerprint in shell.text("recipient", "list")
    assert "hall 3" in shell.text("recipient", "show", "billing")
    assert shell.text("recipient", "show", "billing", "--pem") == Path(public).read_text()

    shell.text("publish", "sealed", "card 4111", "--seal-for", "billing", "--seal-for", "billing")
    shell.text("publish", "sealed", "--lines", "--seal-for", f"billing={fingerprint}", input=b"one\ntwo\n")
    stored = shell.text("consume", "sealed", "--peek", "--json")
    assert "payload_base64" in json.loads(stored.splitlines()[0])
    opened = "card 4111\none\ntwo\n"
    assert shell.text("consume", "sealed", "--peek", "--open-with", private) == opened
    assert shell.text("consume", "sealed", "-s", "s", "--open-with", private) == opened

    shell.text("recipient", "remove", "billing", "--fingerprint", fingerprint, "--yes")
    refused = shell.run("publish", "sealed", "x", "--seal-for", "billing")
    assert refused.returncode == 1
    assert b"recipient 'billing' does not exist" in refused.stderr


def test_what_the_key_does_not_open_goes_back_with_the_reason(shell: Shell, tmp_path: Path) -> None:
    for name in ("mine", "theirs"):
        keygen(shell, tmp_path, name)
        shell.text("recipient", "register", name, "--public-key", str(tmp_path / f"{name}.pub"))
        shell.text("publish", "mixed", f"for {name}", "--seal-for", name)
    done = shell.run("consume", "mixed", "-s", "s", "--open-with", str(tmp_path / "mine.key"), "--wait", "0.1s")
    assert done.stdout == b"for mine\n"
    assert done.returncode == 1
    assert b"was not sealed for any of the keys" in done.stderr
    assert b"1 messages could not be opened, and went back" in done.stderr
    assert shell.depth("mixed", "s") == 1


def test_a_passphrase_protects_the_private_key(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "passphrase").write_text("open sesame\n")
    keygen(shell, tmp_path, "careful", "--passphrase-file", str(tmp_path / "passphrase"), "--type", "rsa-2048")
    shell.text("recipient", "register", "careful", "--public-key", str(tmp_path / "careful.pub"))
    shell.text("publish", "careful", "secret", "--seal-for", "careful")
    key = str(tmp_path / "careful.key")
    refused = shell.run("consume", "careful", "-s", "s", "--open-with", key)
    assert refused.returncode == 2
    assert b"needs its passphrase" in refused.stderr
    passphrase = ["--passphrase-file", str(tmp_path / "passphrase")]
    assert shell.text("consume", "careful", "-s", "s", "--open-with", key, *passphrase) == "secret\n"


def test_a_pinned_fingerprint_that_does_not_match_is_refused(shell: Shell, tmp_path: Path) -> None:
    fingerprint, other = keygen(shell, tmp_path, "pinned"), keygen(shell, tmp_path, "other")
    shell.text("recipient", "register", "pinned", "--public-key", str(tmp_path / "pinned.pub"))
    refused = shell.run("publish", "pinned", "x", "--seal-for", f"pinned={other}")
    assert refused.returncode == 1
    assert fingerprint in refused.stderr.decode()
    assert other in refused.stderr.decode()
    half = shell.run("publish", "pinned", "x", "--seal-for", f"pinned={other}", "--seal-for", "other")
    assert half.returncode == 2


def test_keys_are_not_written_over(shell: Shell, tmp_path: Path) -> None:
    keygen(shell, tmp_path, "once")
    before = (tmp_path / "once.key").read_text()
    refused = shell.run("recipient", "keygen", "once", "--out", str(tmp_path))
    assert refused.returncode == 1
    assert b"is not written over" in refused.stderr
    assert (tmp_path / "once.key").read_text() == before


@pytest.mark.parametrize("file", ["a.key", "missing", "text"])
def test_what_is_no_public_key_is_not_registered(shell: Shell, tmp_path: Path, file: str) -> None:
    keygen(shell, tmp_path, "a")
    (tmp_path / "text").write_text("hello")
    refused = shell.run("recipient", "register", "a", "--public-key", str(tmp_path / file))
    assert refused.returncode == 2
    assert file in refused.stderr.decode()
    assert (tmp_path / "a.key").read_text().splitlines()[1] not in refused.stderr.decode()
