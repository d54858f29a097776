"""What every peer says of itself, and how one that cannot run is passed over."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from bench.peers import PEERS, installing
from bench.peers.client import Job, age_ms, paced
from bench.peers.peer import ServedPeer
from bench.peers.serving import answers, free_ports, serving

LISTENER = "import socket, sys, time; s = socket.create_server(('127.0.0.1', int(sys.argv[1]))); time.sleep(60)"
SERVED = [peer for peer in PEERS if isinstance(peer, ServedPeer) and peer.debian_package]


def named(peer):
    return peer.name


def test_names_are_fit_for_files_and_all_different():
    names = [peer.name for peer in PEERS]
    assert len(set(names)) == len(names) == 7
    assert all(name == name.lower() and name.replace("-", "").isalnum() for name in names)


@pytest.mark.parametrize("peer", PEERS, ids=named)
def test_a_peer_states_its_durability_and_its_settings(peer):
    assert peer.title
    assert len(peer.durability.split()) > 4
    assert len(peer.settings.split()) > 4
    assert peer.count >= 1_000


def test_only_the_ceiling_keeps_nothing():
    assert [peer.name for peer in PEERS if not peer.durable] == ["zeromq"]


@pytest.mark.parametrize("peer", PEERS, ids=named)
def test_a_peer_without_its_client_says_what_to_install(peer, monkeypatch):
    monkeypatch.setattr(type(peer), "packages", ("no-such-package-of-a-peer",))
    line = peer.absent()
    assert line is not None
    assert line.startswith(peer.title)
    assert "sealane[bench]" in line
    assert "\n" not in line


@pytest.mark.parametrize("peer", SERVED, ids=named)
def test_a_peer_without_its_server_says_what_to_install_and_why_it_could_not(peer, monkeypatch):
    monkeypatch.setattr(type(peer), "packages", ())
    monkeypatch.setattr(installing, "program", lambda name: None)
    asked = []

    def install(*package):
        asked.append(package)
        return "no network"

    monkeypatch.setattr(installing, "install", install)
    line = peer.absent()
    assert line is not None
    assert f"apt-get install {peer.debian_package}" in line
    assert asked == []
    assert peer.missing() == f"{line} (no network)"
    assert asked == [(peer.debian_package, *peer.services)]


@pytest.mark.parametrize("peer", SERVED, ids=named)
def test_a_server_that_is_there_is_not_installed_again(peer, monkeypatch):
    monkeypatch.setattr(type(peer), "packages", ())
    monkeypatch.setattr(installing, "program", lambda name: f"/usr/sbin/{name}")
    monkeypatch.setattr(installing, "install", lambda *_: pytest.fail("it was there"))
    assert peer.missing() is None


def test_only_root_installs(monkeypatch):
    monkeypatch.setattr(os, "geteuid", lambda: 1_000)
    monkeypatch.setattr(installing, "program", lambda name: name)
    installing.install.cache_clear()
    assert installing.install("anything") == "only root can install it"
    installing.install.cache_clear()


def test_nothing_is_installed_where_its_service_would_start(monkeypatch, tmp_path):
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 0\n")
    policy.chmod(0o755)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(installing, "program", lambda name: name)
    monkeypatch.setattr(installing, "POLICY", policy)
    monkeypatch.setattr(installing, "_apt", lambda *_: pytest.fail("its service would start"))
    installing.install.cache_clear()
    assert "would let its service start" in (installing.install("anything", "anything") or "")
    installing.install.cache_clear()


def test_services_are_forbidden_to_start_while_a_package_is_installed_and_not_after(monkeypatch, tmp_path):
    policy = tmp_path / "policy-rc.d"
    answers_meanwhile = []

    def apt(*_):
        answers_meanwhile.append(subprocess.run([policy, "anything", "start"], check=False).returncode)

    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(installing, "program", lambda name: name)
    monkeypatch.setattr(installing, "POLICY", policy)
    monkeypatch.setattr(installing, "_apt", apt)
    installing.install.cache_clear()
    assert installing.install("anything") is None
    installing.install.cache_clear()
    assert answers_meanwhile == [installing.FORBIDDEN]
    assert not policy.exists()


def test_a_server_has_ended_when_it_is_left(tmp_path):
    (port,) = free_ports(1)
    with serving([sys.executable, "-c", LISTENER, str(port)], port, tmp_path / "log") as process:
        assert answers(port)
    assert process.returncode is not None
    assert not answers(port)


def test_a_server_ends_with_a_process_that_is_killed(tmp_path):
    (port,) = free_ports(1)
    owner = (
        "import sys, time; from pathlib import Path; from bench.peers.serving import serving\n"
        f"with serving([sys.executable, '-c', {LISTENER!r}, '{port}'], {port}, Path({str(tmp_path / 'log')!r})):\n"
        "    print('up', flush=True); time.sleep(60)\n"
    )
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()
    deadline = time.monotonic() + 10
    while answers(port):
        assert time.monotonic() < deadline, "the server outlived the bench"


def test_a_server_that_ends_at_once_is_told_with_its_log(tmp_path):
    (port,) = free_ports(1)
    command = [sys.executable, "-c", "raise SystemExit('no such option')"]
    with pytest.raises(RuntimeError, match="no such option"), serving(command, port, tmp_path / "log"):
        pass


def test_a_late_publish_has_the_moment_at_which_it_was_due():
    moments = []
    for moment_ns in paced(4):
        moments.append(moment_ns)
        if len(moments) == 1:
            time.sleep(0.01)
    assert moments[2] - moments[1] == 1_000_000
    assert moments[3] - moments[2] == 1_000_000
    payload = Job("127.0.0.1:1", 1, 1, 100).stamped(time.monotonic_ns() - 5_000_000)
    assert len(payload) == 100
    assert age_ms(payload) >= 5
