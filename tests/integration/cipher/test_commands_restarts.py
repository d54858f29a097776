"""Sender and receiver while the node is killed, stopped and started again: nothing is lost, nothing is doubled."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sealane.testing.node_process import NodeProcess
from tests.integration.cli.shell import DEADLINE_SECONDS, Shell, close
from tests.sync.waiting import eventually

LINES_A_ROUND = 40


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path / "data", {"doors.cipher.enabled": "on", "doors.cipher.port": 0}) as running:
        yield running


@pytest.fixture
def shell(node: NodeProcess, tmp_path: Path) -> Shell:
    made = Shell(node.data)
    made.text("cipher", "keygen", "--out", str(tmp_path / "receiver"))
    return made


def receiving(directory: Path, out: str) -> list[str]:
    key, bound = str(directory / "receiver.key"), ["--exchange", "x", "--routing-key", "k"]
    return ["cipher", "receive", "q", "--key", key, "--out", str(directory / out), *bound]


def sending(directory: Path) -> list[str]:
    return [
        "cipher",
        "send",
        "x",
        "k",
        "--to",
        str(directory / "receiver.pub"),
        "--queue",
        "q",
        "--lines",
        "--tries",
        "30",
    ]


def stored(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    text = path.read_text()
    found: list[dict[str, str]]
    found = json.loads(text) if path.suffix == ".json" else [json.loads(line) for line in text.splitlines()]
    return found


def wait_for(path: Path, count: int) -> None:
    """Entries are counted, and not read: one may be seen in part while it is being appended."""
    eventually(lambda: path.exists() and path.read_bytes().count(b'"message_id":') >= count, DEADLINE_SECONDS)


def ended(process: subprocess.Popen[bytes]) -> None:
    code = process.wait(DEADLINE_SECONDS)
    assert process.stderr is not None
    assert code == 0, process.stderr.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("out", "interruptions"),
    [
        ("received_messages.json", [None, NodeProcess.kill, None]),
        ("received.jsonl", [NodeProcess.stop, NodeProcess.kill]),
    ],
)
def test_both_go_on_over_kills_and_restarts_of_the_node(
    node: NodeProcess,
    shell: Shell,
    tmp_path: Path,
    out: str,
    interruptions: list[Callable[[NodeProcess], object] | None],
) -> None:
    lines = [f"line {number}" for number in range(LINES_A_ROUND * len(interruptions))]
    receiver = shell.start(*receiving(tmp_path, out), "--count", str(len(lines)), "--quiet")
    sender = shell.start(*sending(tmp_path), stdin=subprocess.PIPE)
    try:
        assert sender.stdin is not None
        for number, interrupt in enumerate(interruptions):
            part = lines[number * LINES_A_ROUND : (number + 1) * LINES_A_ROUND]
            sender.stdin.write("".join(f"{line}\n" for line in part).encode())
            sender.stdin.flush()
            if interrupt is not None:
                wait_for(tmp_path / out, number * LINES_A_ROUND + 1)
                interrupt(node)
                node.start()
        sender.stdin.close()
        ended(sender)
        ended(receiver)
    finally:
        close(sender)
        close(receiver)
    found = stored(tmp_path / out)
    assert sorted(each["message"] for each in found) == sorted(lines), "each of them, once"
    assert len({each["message_id"] for each in found}) == len(lines)
    assert shell.depth("q", "cipher") == 0, "every ack is durable"


@pytest.mark.slow
def test_a_receiver_that_is_killed_at_any_moment_goes_on_where_it_was(
    node: NodeProcess, shell: Shell, tmp_path: Path
) -> None:
    path = tmp_path / "received.jsonl"
    lines = [f"line {number}" for number in range(600)]
    shell.text(*sending(tmp_path), input="\n".join(lines).encode())
    for enough in (1, 150, 300):
        receiver = shell.start(*receiving(tmp_path, path.name), "--quiet")
        try:
            wait_for(path, enough)
            receiver.kill()
            receiver.wait(DEADLINE_SECONDS)
        finally:
            close(receiver)
    shell.text(*receiving(tmp_path, path.name), "--quiet", "--wait", "2s")
    assert sorted(each["message"] for each in stored(path)) == sorted(lines)
    assert shell.depth("q", "cipher") == 0
