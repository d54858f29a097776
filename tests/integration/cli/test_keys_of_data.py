"""The keys of data from the command line, on a node that serves and on files alone."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest

from sealane.security.at_rest.master_key import MASTER_KEY_FILE
from tests.integration.cli.shell import Shell

PASSPHRASE = b"correct horse battery staple\n"


def publish(shell: Shell, topic: str, count: int = 50) -> None:
    lines = b"".join(b"message %d\n" % number for number in range(count))
    shell.run("publish", topic, "--lines", input=lines).check_returncode()


def payloads(shell: Shell, topic: str, subscription: str) -> list[str]:
    return shell.text("consume", topic, "-s", subscription).splitlines()


def key_of(shell: Shell, domain: str) -> int:
    found = {each["domain"]: each for each in shell.json("key", "status", "--json")["domains"]}
    key: int = found[domain]["key"]
    return key


def test_a_domains_key_is_exchanged_while_the_node_serves(shell: Shell) -> None:
    publish(shell, "rotated/orders")
    before = key_of(shell, "rotated")
    done = shell.json("key", "rotate", "--domain", "rotated", "--json")
    assert done["rotated"]["rotated"] > before
    assert done["resealed"] is True
    publish(shell, "rotated/orders")
    assert len(payloads(shell, "rotated/orders", "all")) == 100
    status = shell.json("key", "status", "--json")
    assert status["resealing"] is False
    assert status["bytes_left"] == 0


def test_all_keys_are_exchanged_and_the_rest_is_left_to_the_node(shell: Shell) -> None:
    publish(shell, "one/orders", 3)
    publish(shell, "two/orders", 3)
    done = shell.json("key", "rotate", "--all", "--no-wait", "--json")
    assert {"one", "two", "_system"} <= set(done["rotated"])
    assert done["resealed"] is False
    shell.text("key", "rotate", "--domain", "one")
    assert len(payloads(shell, "two/orders", "all")) == 3


def test_the_master_key_is_exchanged_while_the_node_serves(shell: Shell, tmp_path: Path) -> None:
    publish(shell, "kept/orders", 3)
    shell.text("key", "backup", str(tmp_path / "old.key"))
    before = (shell.data / MASTER_KEY_FILE).read_bytes()
    assert "another master key" in shell.text("key", "rotate", "--master")
    assert (shell.data / MASTER_KEY_FILE).read_bytes() != before
    publish(shell, "made-after-it/orders", 3)
    assert len(payloads(shell, "kept/orders", "all")) == 3
    (shell.data / MASTER_KEY_FILE).rename(tmp_path / "aside")
    refused = shell.run("key", "restore", str(tmp_path / "old.key"))
    assert refused.returncode == 1
    assert b"older than the last" in refused.stderr
    (tmp_path / "aside").rename(shell.data / MASTER_KEY_FILE)


def test_a_backup_is_sealed_by_a_passphrase_and_put_back(shell: Shell, tmp_path: Path) -> None:
    kept = tmp_path / "sealed.key"
    made = shell.run("key", "backup", str(kept), "--passphrase-stdin", input=PASSPHRASE)
    assert made.returncode == 0, made.stderr
    assert stat.S_IMODE(os.stat(kept).st_mode) == 0o600
    again = shell.run("key", "restore", str(kept), "--passphrase-stdin", input=PASSPHRASE)
    assert again.returncode == 1
    assert b"nothing to restore" in again.stderr
    key = (shell.data / MASTER_KEY_FILE).read_bytes()
    (shell.data / MASTER_KEY_FILE).unlink()
    wrong = shell.run("key", "restore", str(kept), "--passphrase-stdin", input=b"something else entirely\n")
    assert wrong.returncode == 1
    assert b"passphrase does not open" in wrong.stderr
    shell.run("key", "restore", str(kept), "--passphrase-stdin", input=PASSPHRASE).check_returncode()
    assert (shell.data / MASTER_KEY_FILE).read_bytes() == key


def test_without_a_terminal_a_passphrase_must_come_by_standard_input(shell: Shell, tmp_path: Path) -> None:
    asked = shell.run("key", "backup", str(tmp_path / "a.key"), "--passphrase")
    assert asked.returncode == 2
    assert b"--passphrase-stdin" in asked.stderr
    empty = shell.run("key", "backup", str(tmp_path / "a.key"), "--passphrase-stdin", input=b"")
    assert empty.returncode == 2
    short = shell.run("key", "backup", str(tmp_path / "a.key"), "--passphrase-stdin", input=b"short\n")
    assert short.returncode == 2
    assert not (tmp_path / "a.key").exists()


def test_a_domain_is_destroyed_by_its_name_alone(shell: Shell) -> None:
    publish(shell, "shredded/orders")
    for arguments in ((), ("--yes-destroy", "shreded")):
        refused = shell.run("key", "destroy", "--domain", "shredded", *arguments)
        assert refused.returncode == 2
    assert "shredded/orders" in shell.text("topic", "list")
    done = shell.json("key", "destroy", "--domain", "shredded", "--yes-destroy", "shredded", "--json")
    assert done == {"topics": 1}
    assert "shredded/orders" not in shell.text("topic", "list")
    publish(shell, "shredded/orders", 2)
    assert len(payloads(shell, "shredded/orders", "all")) == 2


@pytest.mark.parametrize("arguments", [(), ("--domain", "a", "--all"), ("--master", "--all")])
def test_which_key_has_to_be_said(shell: Shell, arguments: tuple[str, ...]) -> None:
    assert shell.run("key", "rotate", *arguments).returncode == 2


def test_a_domain_that_is_not_there_is_an_error(shell: Shell) -> None:
    refused = shell.run("key", "rotate", "--domain", "nowhere")
    assert refused.returncode == 1
    assert b"'nowhere' has no key" in refused.stderr


def test_it_all_works_on_files_without_a_node(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")

    def run(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        done = shell.run(*arguments)
        assert done.returncode == 0, done.stderr
        return done

    run("key", "status")
    before = key_of(shell, "_system")
    run("key", "rotate", "--all")
    assert key_of(shell, "_system") > before
    run("key", "rotate", "--master")
    run("key", "backup", str(tmp_path / "kept"))
    (tmp_path / "data" / MASTER_KEY_FILE).unlink()
    run("key", "restore", str(tmp_path / "kept"))
    run("key", "status")
