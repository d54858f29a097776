"""What systemd is told, and that a node does not depend on it."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from sealane.server.systemd import READY, VARIABLE, tell_systemd


@pytest.mark.parametrize("kind", ["path", "name"])
def test_whoever_waits_is_told(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    address = str(tmp_path / "notify") if kind == "path" else f"@{tmp_path}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address.replace("@", "\0", 1))
        systemd.settimeout(10)
        monkeypatch.setenv(VARIABLE, address)
        tell_systemd(READY)
        assert systemd.recv(64) == b"READY=1"


def test_if_nobody_waits_nothing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    tell_systemd(READY)


def test_who_has_gone_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nobody"))
    tell_systemd(READY)
