"""`sealane up`: starting, being found, refusing what cannot be, and stopping."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from sealane.cli.up import EXTRA_MODULES
from sealane.server.notices import read_node_notice
from tests.integration.server.up import FREE_PORTS, Up, environment, sealane


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


def test_a_node_says_where_its_doors_are_and_what_to_try(tmp_path: Path) -> None:
    with Up(tmp_path) as node:
        doors = node.ready["doors"]
        code, out, _ = node.end(signal.SIGTERM)

    assert code == 0
    for address in doors.values():
        assert address in out
    assert "INSECURE" in out
    assert [line.split("sealane ")[-1] for line in out.splitlines() if " -m sealane " in line] == [
        "publish orders hello",
        "consume orders --subscription billing",
        "top",
    ]


def test_the_ready_file_has_pid_and_doors_and_goes_with_the_node(tmp_path: Path) -> None:
    with Up(tmp_path) as node:
        assert set(node.ready) == {"pid", "doors"}
        assert node.ready["pid"] == node.process.pid
        assert list(node.ready["doors"]) == ["native", "http"]
        assert b"ready" in node.get("/ready")
        assert b"alive" in node.get("/healthz")
        node.end(signal.SIGTERM)

    assert not node.ready_file.exists()


def test_the_data_directory_tells_where_the_node_is_as_long_as_it_runs(tmp_path: Path) -> None:
    with Up(tmp_path) as node:
        notice = read_node_notice(node.data)
        mode = (node.data / "node.json").stat().st_mode
        node.end(signal.SIGINT)

    assert notice is not None
    assert (notice.pid, notice.doors, notice.insecure) == (node.ready["pid"], node.ready["doors"], True)
    assert mode & 0o777 == 0o600
    assert read_node_notice(node.data) is None


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_stops_it_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    with Up(tmp_path) as node:
        code, _, log = node.end(number)

    assert code == 0
    assert "Traceback" not in log
    assert "stopped" in log


def test_after_a_kill_it_starts_again_on_the_same_data(tmp_path: Path) -> None:
    with Up(tmp_path) as node:
        first = node.ready
        node.end(signal.SIGKILL)
    node.ready_file.unlink()
    assert read_node_notice(node.data) is not None, "nobody was left to take it down"

    with Up(tmp_path) as node:
        assert node.ready["pid"] != first["pid"]
        notice = read_node_notice(node.data)
        assert notice is not None
        assert notice.pid == node.ready["pid"]
        code, _, _ = node.end(signal.SIGTERM)
    assert code == 0


def test_a_second_process_on_the_same_data_hears_who_holds_it(tmp_path: Path) -> None:
    with Up(tmp_path) as node:
        # The same ports too, as two calls of one command have: what counts is the directory.
        ports = [f"--set=doors.{name}.port={port_of(address)}" for name, address in node.ready["doors"].items()]
        second = sealane("up", "--insecure", *ports, cwd=tmp_path)
        assert b"ready" in node.get("/ready")

    assert second.returncode == 1
    assert f"process {node.ready['pid']}" in second.stderr
    assert "sealane-data" in second.stderr


@pytest.mark.parametrize("door", ["native", "http", "grpc"])
def test_a_taken_port_is_an_error_that_names_port_and_setting(tmp_path: Path, door: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        opened = (f"--set=doors.{door}.enabled=on", f"--set=doors.{door}.port={port}")
        result = sealane("up", "--insecure", *FREE_PORTS, *opened, cwd=tmp_path)

    assert result.returncode == 1
    assert f"127.0.0.1:{port}" in result.stderr
    assert f"doors.{door}.port" in result.stderr
    assert "Traceback" not in result.stderr
    assert not (tmp_path / "sealane-data" / "node.json").exists()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.0.7", "example.com"])
def test_insecure_is_for_this_machine_alone(tmp_path: Path, host: str) -> None:
    result = sealane("up", "--insecure", f"--set=doors.http.host={host}", cwd=tmp_path)

    assert result.returncode == 2
    assert "doors.http.host" in result.stderr
    assert host in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_door_that_nobody_says_who_comes_by_cannot_be_enabled_on_a_secure_node(tmp_path: Path) -> None:
    result = sealane("up", cwd=tmp_path, SEALANE_DOORS__CIPHER__ENABLED="on")

    assert result.returncode == 2
    assert "doors.cipher.principal" in result.stderr
    assert not (tmp_path / "sealane-data").exists()


def test_an_unknown_key_stops_the_start_and_tells_what_was_meant(tmp_path: Path) -> None:
    (tmp_path / "sealane.yaml").write_text("doors:\n  http:\n    prot: 0\nzebra: 1\n")
    result = sealane("up", "--insecure", cwd=tmp_path)

    assert result.returncode == 2
    assert result.stderr.splitlines() == [
        "error: sealane.yaml:3: there is no setting 'doors.http.prot'; did you mean doors.http.port?",
        "error: sealane.yaml:4: there is no setting 'zebra'; `sealane config show` lists them all",
    ]
    assert not (tmp_path / "sealane-data").exists()


def test_config_show_tells_each_value_and_where_it_was_written(tmp_path: Path) -> None:
    (tmp_path / "sealane.yaml").write_text("storage:\n  segment_bytes: 128MiB\nlog: {level: debug}\n")
    arguments = ("config", "show", "--set", "topics.partitions=4")
    shown = sealane(*arguments, cwd=tmp_path, SEALANE_DOORS__HTTP__PORT="0")
    rows = {line.split()[0]: line.split()[1:] for line in shown.stdout.splitlines()}

    assert rows["storage.segment_bytes"] == ["128MiB", "sealane.yaml:2"]
    assert rows["log.level"] == ["debug", "sealane.yaml:3"]
    assert rows["doors.http.port"] == ["0", "SEALANE_DOORS__HTTP__PORT"]
    assert rows["topics.partitions"] == ["4", "--set", "topics.partitions"]
    assert rows["doors.native.port"] == ["7070", "default"]

    only = sealane(*arguments, "--changed", "--json", cwd=tmp_path, SEALANE_DOORS__HTTP__PORT="0")
    described = json.loads(only.stdout)
    assert described["config"] == "sealane.yaml"
    assert set(described["settings"]) == {
        "doors.http.port",
        "log.level",
        "storage.segment_bytes",
        "topics.partitions",
    }
    assert described["settings"]["storage.segment_bytes"] == {
        "value": 128 * 2**20,
        "default": 64 * 2**20,
        "source": "file",
        "place": "sealane.yaml:2",
    }


def test_config_show_of_nothing_changed_says_so(tmp_path: Path) -> None:
    assert sealane("config", "show", "--changed", cwd=tmp_path).stdout == "every setting has its default\n"


def test_settings_reach_the_node(tmp_path: Path) -> None:
    with Up(tmp_path, "--set=doors.http.enabled=off", "--set=log.format=json") as node:
        assert list(node.ready["doors"]) == ["native"]
        _, _, log = node.end(signal.SIGTERM)

    events = [json.loads(line) for line in log.splitlines()]
    assert events[-1]["event"] == "stopped"


def without_the_extra(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command as if the packages of the extra `server` had not been installed."""
    hide = f"import sys; sys.modules.update(dict.fromkeys({EXTRA_MODULES!r}))"
    program = f"{hide}; from sealane.cli.main import app; app({list(arguments)!r})"
    return subprocess.run(
        [sys.executable, "-c", program], cwd=cwd, env=environment(), capture_output=True, text=True, check=False
    )


def test_without_the_extra_the_line_that_installs_it_is_told(tmp_path: Path) -> None:
    result = without_the_extra("up", "--insecure", cwd=tmp_path)

    assert result.returncode == 1
    assert "pip install 'sealane[server]'" in result.stderr
    assert "uvicorn" in result.stderr


def test_settings_can_be_looked_at_without_the_extra(tmp_path: Path) -> None:
    shown = without_the_extra("config", "show", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert "doors.http.port" in shown.stdout

    (tmp_path / "sealane.yaml").write_text("log: {level: debug}")
    refused = without_the_extra("config", "show", cwd=tmp_path)
    assert refused.returncode == 2
    assert "pip install 'sealane[server]'" in refused.stderr
