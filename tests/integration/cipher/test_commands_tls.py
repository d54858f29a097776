"""`sealane cipher send` and `receive` by TLS, to a node that is certainly the one that was meant."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.cli.shell import Shell
from tests.integration.server.up import Up

SETTINGS = ("--set=doors.cipher.enabled=on", "--set=doors.cipher.port=0", "--set=doors.cipher.tls=on")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("node"), *SETTINGS, insecure=False) as up:
        yield up


@pytest.fixture(scope="module")
def shell(node: Up) -> Shell:
    made = Shell(node.data)
    made.text("cipher", "keygen", "--out", str(node.directory / "receiver"))
    return made


@pytest.fixture
def sending(node: Up) -> list[str]:
    return ["cipher", "send", "x", "k", "hello", "--to", str(node.directory / "receiver.pub"), "--queue", "q"]


def elsewhere(node: Up, host: str = "127.0.0.1") -> list[str]:
    """As on a machine that knows nothing but the address."""
    return ["--host", host, "--port", node.ready["doors"]["cipher"].rpartition(":")[2], "--tls"]


def test_on_the_nodes_machine_its_owner_needs_no_more_than_a_word(
    node: Up, shell: Shell, sending: list[str], tmp_path: Path
) -> None:
    shell.text(*sending, "--tls")
    out = tmp_path / "received.json"
    receiving = ["cipher", "receive", "q", "--key", str(node.directory / "receiver.key"), "--out", str(out)]
    shell.text(*receiving, "--tls", "--count", "1")
    assert [each["message"] for each in json.loads(out.read_text())] == ["hello"]


def test_elsewhere_a_certificate_says_who_is_asking(node: Up, shell: Shell, sending: list[str], tmp_path: Path) -> None:
    shell.text("ca", "issue", "sender", "--out", str(tmp_path))
    shell.text("grant", "add", "sender", "manage", "~/*")
    shell.text("grant", "add", "sender", "publish", "~/*")
    trusting = ["--ca", str(tmp_path / "ca.crt")]
    shown = ["--certificate", str(tmp_path / "sender.crt"), "--certificate-key", str(tmp_path / "sender.key")]
    assert "ACK received" in shell.text(*sending, *elsewhere(node), *trusting, *shown)
    refused = shell.run(*sending, *elsewhere(node), *trusting)
    assert refused.returncode == 1
    assert b"not acknowledged after 3 tries" in refused.stderr


def test_a_node_that_cannot_be_trusted_is_told_nothing(node: Up, shell: Shell, sending: list[str]) -> None:
    refused = shell.run(*sending, *elsewhere(node))
    assert refused.returncode == 3
    assert b"is not trusted" in refused.stderr
    assert b"--ca" in refused.stderr


def test_plain_text_to_a_door_with_tls_and_the_other_way_are_told(
    node: Up, shell: Shell, sending: list[str], tmp_path: Path
) -> None:
    refused = shell.run(*sending)
    assert refused.returncode == 1
    assert b"this door speaks TLS" in refused.stderr
    with Up(tmp_path, *SETTINGS[:2]) as plain:
        refused = shell.run(*sending, "--tls", "--data", str(plain.data))
        assert refused.returncode == 2
        assert b"does not speak TLS; leave it out" in refused.stderr
