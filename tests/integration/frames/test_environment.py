"""A node that is told by the variables of the document, as `.env.example` has them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.architecture.source import ROOT
from tests.integration.frames.plain import DEADLINE_SECONDS, Plain
from tests.sync.waiting import eventually

EXAMPLE = ROOT / ".env.example"


def variables_of(text: str) -> dict[str, str]:
    """As a shell reads it."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def sealane(*arguments: str, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")}
    return subprocess.run(
        [sys.executable, "-m", "sealane", *arguments],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        env={**own, **environ},
        check=False,
    )


def test_the_example_has_the_names_and_the_defaults_of_the_document() -> None:
    written = variables_of(EXAMPLE.read_text(encoding="utf-8"))
    assert {name: value for name, value in written.items() if not name.startswith("SEALANE_")} == {
        "DELIVERY_MODE": "broadcast",
        "TCP_PORT": "9080",
        "HTTP_PORT": "8080",
        "MAX_CONSUMERS": "10",
        "CONSUMER_CHANNEL_BUFFER_SIZE": "10000",
    }


def test_the_command_line_tells_from_which_variable_a_value_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    environ = {**variables_of(EXAMPLE.read_text(encoding="utf-8")), "TCP_PORT": "9999", "MAX_CONSUMERS": "3"}
    shown = json.loads(sealane("config", "show", "--json", environ=environ).stdout)["settings"]
    assert (shown["doors.frames.port"]["value"], shown["doors.frames.port"]["place"]) == (9999, "TCP_PORT")
    assert (shown["doors.frames.consumers_max"]["value"], shown["doors.frames.consumers_max"]["place"]) == (
        3,
        "MAX_CONSUMERS",
    )
    assert shown["doors.http.port"]["place"] == "HTTP_PORT"
    assert shown["doors.frames.mode"]["source"] == "environment"


@pytest.mark.parametrize("more", [[], ["--insecure"]], ids=["secure", "insecure"])
def test_a_node_starts_with_the_example(tmp_path: Path, more: list[str]) -> None:
    ready = tmp_path / "ready.json"
    environ = {**variables_of(EXAMPLE.read_text(encoding="utf-8")), "TCP_PORT": "0", "HTTP_PORT": "0"}
    environ |= {"SEALANE_DOORS__NATIVE__PORT": "0", "SEALANE_DATA": str(tmp_path / "data")}
    environ |= {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    log = (tmp_path / "log").open("wb")
    process = subprocess.Popen(
        [sys.executable, "-m", "sealane", "up", *more, "--ready-file", str(ready)],
        env=environ,
        cwd=tmp_path,
        stdout=log,
        stderr=log,
    )
    try:
        eventually(lambda: ready.exists() or process.poll() is not None, DEADLINE_SECONDS)
        assert ready.exists(), (tmp_path / "log").read_text()
        doors = json.loads(ready.read_text())["doors"]
        if not more:
            made = sealane("account", "create", "frames", "--role", "member", environ=environ)
            assert made.returncode == 0, made.stderr
        with Plain.consumer(doors["frames"]) as consumer, Plain.producer(doors["frames"]) as producer:
            producer.send(b"hello")
            assert consumer.take(1) == [b"hello"]
        if more:
            for path in ("/healthz", "/ready"):
                with urllib.request.urlopen(f"http://{doors['http']}{path}", timeout=DEADLINE_SECONDS) as answer:
                    assert answer.status == 200
    finally:
        process.terminate()
        assert process.wait(DEADLINE_SECONDS) == 0
        log.close()
