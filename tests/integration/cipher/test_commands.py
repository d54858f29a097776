"""`sealane cipher keygen`, `send` and `receive`, through the door of a real node."""

from __future__ import annotations

import json
import signal
import socket
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.cli.shell import DEADLINE_SECONDS, Shell, close
from tests.integration.server.up import Up
from tests.unit.cipher.pycryptodome_client import decrypt_message_hybrid, encrypt_message_hybrid

CIPHER_DOOR = ("--set=doors.cipher.enabled=on", "--set=doors.cipher.port=0")


class Place:
    """A queue of a test's own, with its receiver's keys and file."""

    def __init__(self, shell: Shell, directory: Path, name: str) -> None:
        self.shell = shell
        self.directory = directory
        self.exchange, self.queue = f"{name}-exchange", f"{name}-queue"
        self.out = directory / "received_messages.json"
        shell.text("cipher", "keygen", "--out", str(directory / "receiver"))

    @property
    def sending(self) -> list[str]:
        """The arguments of `sealane cipher send` before what is sent."""
        public = str(self.directory / "receiver.pub")
        return ["cipher", "send", self.exchange, "k", "--to", public, "--queue", self.queue]

    @property
    def receiving(self) -> list[str]:
        private = str(self.directory / "receiver.key")
        return ["cipher", "receive", self.queue, "--key", private, "--out", str(self.out)]

    def stored(self, out: Path | None = None) -> list[dict[str, Any]]:
        path = out or self.out
        text = path.read_text(encoding="utf-8")
        found: list[dict[str, Any]]
        found = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
        return found

    def texts(self, out: Path | None = None) -> list[str]:
        return [each["message"] for each in self.stored(out)]


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("node"), *CIPHER_DOOR) as up:
        yield up


@pytest.fixture(scope="module")
def shell(node: Up) -> Shell:
    return Shell(node.data)


@pytest.fixture
def place(shell: Shell, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return Place(shell, tmp_path, request.node.name.split("[")[0].removeprefix("test_")[:100])


def test_from_a_key_pair_to_a_received_message(place: Place) -> None:
    assert stat.S_IMODE((place.directory / "receiver.key").stat().st_mode) == 0o600
    sent = place.shell.text(*place.sending, "good morning").splitlines()
    message_id = sent[0].removeprefix("[SENDER] Sending message ")
    assert sent == [
        f"[SENDER] Sending message {message_id}",
        f"[SENDER] Server ACK received for message {message_id}",
    ]
    received = place.shell.text(*place.receiving, "--count", "1").splitlines()
    assert received[0].startswith("[RECEIVER] Connected to 127.0.0.1:")
    assert received[1:] == [
        f"[RECEIVER] Received message {message_id}",
        f"[RECEIVER] Decrypted and stored message {message_id}",
        f"[RECEIVER] Sending ACK for message {message_id}",
        f"[RECEIVER] Server confirmed ACK for message {message_id}",
        f"received 1 messages into {place.out}",
    ]
    (stored,) = place.stored()
    assert stored.pop("received_at").startswith("20")
    assert stored == {"message_id": message_id, "message": "good morning"}
    assert place.shell.depth(place.queue, "cipher") == 0


def test_programs_get_json_and_the_node_never_sees_the_text(place: Place) -> None:
    (place.directory / "binary").write_bytes(b"\xff\x00")
    sent = place.shell.objects(*place.sending, "one", "two", "--json")
    sent += place.shell.objects(*place.sending, "--file", str(place.directory / "binary"), "--json")
    sent += place.shell.objects(*place.sending, "-", "--json", "--oaep", "sha256", input=b"three\n")
    assert [each["acknowledged"] for each in sent] == [True] * 4
    assert "three" not in place.shell.text("consume", place.queue, "--peek", "--count", "4")
    received = place.shell.objects(*place.receiving, "--count", "4", "--json")
    assert [each["message_id"] for each in received] == [each["message_id"] for each in sent]
    assert [each.get("message") or each["message_base64"] for each in received] == ["one", "two", "/wA=", "three\n"]
    assert place.stored() == received


def test_a_message_that_is_sent_twice_under_one_id_is_received_once(place: Place) -> None:
    for _ in range(2):
        assert "ACK received for message order-1" in place.shell.text(*place.sending, "hello", "--id", "order-1")
    place.shell.text(*place.receiving, "--wait", "0.5s")
    assert [each["message_id"] for each in place.stored()] == ["order-1"]


def test_many_lines_arrive_each_once_and_in_order(place: Place) -> None:
    lines = [f"line {number}" for number in range(1_200)]
    said = place.shell.text(*place.sending, "--lines", input="\n".join(lines).encode())
    assert said == f"sent 1,200 messages to {place.exchange}, all acknowledged\n"
    out = place.directory / "received.jsonl"
    said = place.shell.text(*place.receiving, "--out", str(out), "--count", "1200", "--quiet")
    assert said == f"received 1,200 messages into {out}\n"
    assert place.texts(out) == lines
    assert place.shell.depth(place.queue, "cipher") == 0


def test_what_the_key_does_not_open_is_told_and_stays_for_who_has_the_right_one(place: Place) -> None:
    place.shell.text("cipher", "keygen", "--out", str(place.directory / "other"))
    other = str(place.directory / "other.key")
    place.shell.text(*place.sending, "for the receiver", "--id", "a")
    place.shell.text(*place.sending, "--to", str(place.directory / "other.pub"), "for the other one", "--id", "b")

    done = place.shell.run(*place.receiving, "--wait", "0.5s")
    assert done.returncode == 1
    assert b"Message b cannot be decrypted, and is not acknowledged" in done.stderr
    assert b"1 messages could not be decrypted, and were not acknowledged" in done.stderr
    assert place.texts() == ["for the receiver"]

    stopped = place.shell.run(*place.receiving, "--undecryptable", "stop")
    assert stopped.returncode == 1
    assert b"error: message b cannot be decrypted" in stopped.stderr

    out = place.directory / "other.jsonl"
    place.shell.text(*place.receiving, "--key", other, "--out", str(out), "--count", "1")
    assert place.texts(out) == ["for the other one"]


def test_ctrl_c_ends_a_receiver_when_what_it_has_in_hand_is_confirmed(place: Place) -> None:
    receiver = place.shell.start(*place.receiving, "--exchange", place.exchange, "--routing-key", "k")
    try:
        assert receiver.stdout is not None
        assert receiver.stderr is not None
        assert receiver.stdout.readline().startswith(b"[RECEIVER] Connected to")
        place.shell.text(*place.sending, "one")
        lines = [receiver.stdout.readline() for _ in range(4)]
        assert lines[-1].startswith(b"[RECEIVER] Server confirmed ACK")
        receiver.send_signal(signal.SIGINT)
        assert receiver.wait(DEADLINE_SECONDS) == 130
        assert receiver.stderr.read() == b"interrupted: received 1 messages, all confirmed\n"
    finally:
        close(receiver)
    place.shell.text(*place.sending, "two")
    place.shell.text(*place.receiving, "--count", "1")
    assert place.texts() == ["one", "two"]


def test_ctrl_c_ends_a_sender_and_says_what_is_pending(place: Place) -> None:
    sender = place.shell.start(*place.sending, "--lines", "--verbose", stdin=subprocess.PIPE)
    try:
        assert sender.stdin is not None
        assert sender.stdout is not None
        assert sender.stderr is not None
        sender.stdin.write(b"one\n")
        sender.stdin.flush()
        assert b"Sending" in sender.stdout.readline()
        assert b"ACK received" in sender.stdout.readline()
        sender.send_signal(signal.SIGINT)
        assert sender.wait(DEADLINE_SECONDS) == 130
        assert sender.stderr.read() == b"interrupted: 1 messages were acknowledged, none is pending\n"
    finally:
        close(sender)


def test_ctrl_c_while_no_ack_comes_says_what_is_pending(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        public, port = str(place.directory / "receiver.pub"), str(deaf.getsockname()[1])
        arguments = ["x", "k", "hello", "--to", public, "--host", "127.0.0.1", "--port", port, "--id", "a"]
        sender = place.shell.start("cipher", "send", *arguments)
        try:
            assert sender.stdout is not None
            assert sender.stderr is not None
            assert sender.stdout.readline() == b"[SENDER] Sending message a\n"
            sender.send_signal(signal.SIGINT)
            assert sender.wait(DEADLINE_SECONDS) == 130
            assert sender.stderr.read() == b"interrupted: 0 messages were acknowledged, pending: 1 message (a)\n"
            assert sender.stdout.read() == b""
        finally:
            close(sender)


def test_one_receiver_writes_to_a_file(place: Place) -> None:
    receiver = place.shell.start(*place.receiving, "--exchange", place.exchange, "--routing-key", "k")
    try:
        assert receiver.stdout is not None
        receiver.stdout.readline()
        refused = place.shell.run(*place.receiving, "--count", "1")
        assert refused.returncode == 1
        assert b"another receiver writes to" in refused.stderr
    finally:
        close(receiver)


def test_a_passphrase_protects_the_private_key(place: Place) -> None:
    passphrase = place.directory / "passphrase"
    passphrase.write_text("open sesame\n")
    careful = ["--passphrase-file", str(passphrase)]
    made = place.shell.json(
        "cipher", "keygen", "--out", str(place.directory / "careful"), *careful, "--bits", "3072", "--json"
    )
    place.shell.text(*place.sending, "--to", made["public"], "secret")
    refused = place.shell.run(*place.receiving, "--key", made["private"])
    assert refused.returncode == 2
    assert b"needs its passphrase" in refused.stderr
    place.shell.text(*place.receiving, "--key", made["private"], *careful, "--count", "1")
    assert place.texts() == ["secret"]


def test_keys_are_not_written_over_and_a_key_that_others_read_is_warned_of(place: Place) -> None:
    refused = place.shell.run("cipher", "keygen", "--out", str(place.directory / "receiver"))
    assert refused.returncode == 1
    assert b"it is not written over" in refused.stderr
    (place.directory / "receiver.key").chmod(0o644)
    place.shell.text(*place.sending, "hello")
    warned = place.shell.run(*place.receiving, "--count", "1")
    assert (warned.returncode, b"has mode 0644" in warned.stderr) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ([], "nothing to send"),
        (["-", "x"], "does not go with other TEXT"),
        (["x", "--lines"], "choose one"),
        (["x", "y", "--id", "a"], "--id names one message"),
        (["x", "--ca", "ca.crt"], "of no use without --tls"),
        (["x", "--queue", "two words"], "two words"),
    ],
)
def test_what_contradicts_itself_is_bad_usage(place: Place, arguments: list[str], problem: str) -> None:
    refused = place.shell.run(*place.sending, *arguments)
    assert refused.returncode == 2, refused.stderr
    assert problem in " ".join(refused.stderr.decode().replace("│", " ").split())


def test_an_exchange_that_leads_nowhere_is_told_with_what_is_pending(place: Place) -> None:
    public = str(place.directory / "receiver.pub")
    refused = place.shell.run("cipher", "send", "nowhere", "k", "hello", "--to", public, "--id", "a", "--json")
    assert refused.returncode == 1
    assert b"exchange 'default/nowhere' does not exist" in refused.stderr
    assert b"1 message (a) not acknowledged after 3 tries" in refused.stderr
    assert json.loads(refused.stdout) == {"message_id": "a", "acknowledged": False}


def test_without_a_node_or_its_door_it_says_what_to_do(place: Place, tmp_path: Path) -> None:
    refused = place.shell.run(*place.sending, "hello", "--data", str(tmp_path / "nothing"))
    assert refused.returncode == 1
    assert b"no node runs on" in refused.stderr
    with Up(tmp_path) as other:
        refused = place.shell.run(*place.sending, "hello", "--data", str(other.data))
        assert refused.returncode == 1
        assert b"doors.cipher.enabled=on" in refused.stderr
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
    refused = place.shell.run(*place.receiving, "--host", "127.0.0.1", "--port", port)
    assert refused.returncode == 1
    assert f"127.0.0.1:{port}".encode() in refused.stderr


def test_its_own_clients_and_these_understand_each_other(place: Place, node: Up) -> None:
    host, port = node.ready["doors"]["cipher"].split(":")
    public, private = (place.directory / f"receiver.{suffix}" for suffix in ("pub", "key"))
    place.shell.text(*place.sending, "from here", "--id", "ours")
    with socket.create_connection((host, int(port)), DEADLINE_SECONDS) as talking:
        lines = talking.makefile("rw", encoding="utf-8", newline="\n")

        def say(line: str) -> str:
            lines.write(f"{line}\n")
            lines.flush()
            return str(lines.readline()).removesuffix("\n")

        written = encrypt_message_hybrid("from PyCryptodome", "theirs", public.read_bytes())
        assert say(f"publish {place.exchange} k {written}") == "ACK theirs"
        _, message_id, text = say(f"fetch {place.queue}").split(" ", 2)
        assert message_id == "ours"
        assert decrypt_message_hybrid(text.encode(), private.read_bytes()) == "from here"
        assert say("ack ours") == "ACK_CONFIRMED ours"
        lines.close()
    place.shell.text(*place.receiving, "--count", "1")
    assert place.texts() == ["from PyCryptodome"]
