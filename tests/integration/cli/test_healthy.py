"""`sealane healthy`: what a container engine or a service manager asks."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sealane.cli import healthy
from sealane.client.notices import NODE_FILE
from sealane.doors.http.door import HttpDoor
from sealane.doors.http.settings import HttpDoorSettings
from sealane.doors.http.watched import Watched
from sealane.node.identity_files import AUTHORITY_FILE, IDENTITY_DIRECTORY
from tests.certificates import TestAuthority
from tests.integration.server.up import Up, environment, sealane

NOT_NEEDED = ("pyarrow", "numpy", "cryptography", "sealane.client", "sealane.engine")


def ask(data: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return sealane("healthy", "--data", str(data), *arguments, cwd=data.parent)


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory):
    with Up(tmp_path_factory.mktemp("node"), insecure=False) as node:
        yield node


def test_a_secure_node_is_known_by_the_authority_in_its_data(secure: Up) -> None:
    answer = ask(secure.data)
    assert (answer.returncode, answer.stdout) == (0, "ready\n"), answer.stderr


def test_a_node_that_shows_another_authoritys_certificate_is_not_the_one(secure: Up, tmp_path: Path) -> None:
    (tmp_path / "identity").mkdir()
    (tmp_path / "node.json").write_bytes((secure.data / "node.json").read_bytes())
    (tmp_path / "identity" / "ca.crt").write_text(TestAuthority().pem)
    assert "certificate verify failed" in (healthy.problem_of(tmp_path) or "")


def test_it_loads_nothing_that_takes_long(secure: Up) -> None:
    program = (
        "import sys; from sealane.cli.main import app\n"
        f"try: app(['healthy', '--data', {str(secure.data)!r}])\n"
        f"except SystemExit: print([name for name in {NOT_NEEDED!r} if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True, env=environment()
    )
    assert shown.stdout.splitlines() == ["ready", "[]"]


def test_it_follows_a_node_from_before_its_start_to_after_its_end(tmp_path: Path) -> None:
    data = tmp_path / "sealane-data"
    early = ask(data)
    assert early.returncode == 1
    assert "no node serves from" in early.stderr

    waiting = subprocess.Popen(
        [sys.executable, "-m", "sealane", "healthy", "--data", str(data), "--wait", "1m"],
        env=environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    with Up(tmp_path) as node:
        out, _ = waiting.communicate(timeout=60)
        assert (waiting.returncode, out) == (0, "ready\n")

        os.kill(node.process.pid, signal.SIGKILL)
        node.process.wait()
    killed = ask(data)
    assert killed.returncode == 1
    assert "does not answer at" in killed.stderr


def test_a_node_without_its_http_door_cannot_be_asked(tmp_path: Path) -> None:
    said = {"pid": 1, "doors": {"native": "127.0.0.1:7070"}, "insecure": False}
    (tmp_path / "node.json").write_text(json.dumps(said))
    assert "doors.http.enabled" in (healthy.problem_of(tmp_path) or "")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"doors": 1, "insecure": false}'])
def test_a_file_that_no_node_writes_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "node.json").write_text(text)
    assert "node.json' is not what a node writes" in (healthy.problem_of(tmp_path) or "")


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "node.json").mkdir()
    assert "node.json' cannot be read: Is a directory" in (healthy.problem_of(tmp_path) or "")


def test_where_no_directory_can_be_no_node_serves(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("")
    assert "no node serves from" in (healthy.problem_of(tmp_path / "data") or "")


def test_an_authority_that_is_missing_is_named(secure: Up, tmp_path: Path) -> None:
    (tmp_path / "node.json").write_bytes((secure.data / "node.json").read_bytes())
    assert "identity/ca.crt' is missing" in (healthy.problem_of(tmp_path) or "")


async def test_a_node_that_does_not_serve_says_why(tmp_path: Path) -> None:
    watched = Watched(lambda: True, lambda: ["the node is stopping"], lambda: (b"", "text/plain"))
    door = HttpDoor(HttpDoorSettings(port=0), watched)
    await door.start()
    said = {"pid": 1, "doors": {"http": door.address}, "insecure": True}
    (tmp_path / "node.json").write_text(json.dumps(said))
    problem = await asyncio.to_thread(healthy.problem_of, tmp_path)
    await door.close()
    assert problem == "the node does not serve: the node is stopping"


def test_it_looks_where_a_node_writes() -> None:
    assert healthy.NODE_FILE == NODE_FILE
    assert f"{IDENTITY_DIRECTORY}/{AUTHORITY_FILE}" == healthy.AUTHORITY_FILE
