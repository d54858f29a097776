"""The units: understood by systemd, hardened, and left enough to run a node and to back it up."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sealane.server.checks import check
from sealane.server.loading import load
from sealane.server.settings import ServerSettings
from tests.deploy import confinement
from tests.deploy.places import DEPLOY, ROOT, check_command
from tests.deploy.units import read_unit
from tests.integration.server.up import DEADLINE_SECONDS, FREE_PORTS, environment

SYSTEMD = DEPLOY / "systemd"
NODE, BACKUP, TIMER = (SYSTEMD / name for name in ("sealane.service", "sealane-backup.service", "sealane-backup.timer"))
SERVICES = pytest.mark.parametrize("unit", [NODE, BACKUP], ids=lambda unit: unit.stem)

EXPOSURE_MAX = 15
"""In tenths, as `systemd-analyze security` weighs what a service could do: 100 is everything."""
FORBIDDEN = """
import ctypes, mmap, os, socket
def refused(what):
    try: what()
    except OSError: return True
print([
    refused(lambda: os.chown("/tmp", 0, 0)),
    refused(lambda: os.chroot("/")),
    refused(lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)),
    refused(lambda: mmap.mmap(-1, 4096, prot=mmap.PROT_WRITE | mmap.PROT_EXEC)),
])
"""


@pytest.fixture(autouse=True)
def _systemd(require_service: Callable[[str, bool, str], None]) -> None:
    require_service("systemd-analyze", shutil.which("systemd-analyze") is not None, "apt-get install systemd")


def installed(unit: Path, directory: Path) -> Path:
    """A copy of the unit whose programs are those of this checkout."""
    text = unit.read_text().replace("/opt/sealane/bin", str(Path(sys.executable).parent))
    copy = directory / unit.name
    copy.write_text(text.replace("/opt/sealane/libexec", str(SYSTEMD)))
    return copy


def commands(unit: Path) -> list[list[str]]:
    service = read_unit(unit)["Service"]
    return [shlex.split(line) for line in service["ExecStart"]]


# --- as systemd sees them ---------------------------------------------------------------------------------------------


def test_systemd_understands_them(tmp_path: Path) -> None:
    units = [installed(unit, tmp_path) for unit in (NODE, BACKUP, TIMER)]
    found = subprocess.run(
        ["systemd-analyze", "verify", *units], capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert (found.returncode, found.stdout + found.stderr) == (0, "")


@SERVICES
def test_little_is_left_to_whoever_takes_over_the_process(unit: Path) -> None:
    found = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", f"--threshold={EXPOSURE_MAX}", unit],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert found.returncode == 0, found.stdout.splitlines()[-1]


def test_its_commands_exist() -> None:
    for program, *words in commands(NODE):
        assert program == "/opt/sealane/bin/sealane"
        check_command(words)
    ((script, *arguments),) = commands(BACKUP)
    assert (SYSTEMD / Path(script).name).stat().st_mode & 0o111
    (keep,) = re.findall(r"\d+", arguments[-1])
    assert int(keep) == 7


def test_they_agree_on_who_runs_and_where_things_are() -> None:
    node, backup = read_unit(NODE)["Service"], read_unit(BACKUP)["Service"]
    (user,) = node["User"]
    assert backup["User"] == [user]
    assert re.search(rf"^u {user} ", (SYSTEMD / "sealane.sysusers").read_text(), re.MULTILINE)
    ((_, data, backups, _),) = commands(BACKUP)
    assert node["Environment"] == [f"SEALANE_DATA={data}"]
    assert data == f"/var/lib/{node['StateDirectory'][0]}"
    assert re.search(rf"^d {backups} 0700 {user} {user} ", (SYSTEMD / "sealane.tmpfiles").read_text(), re.MULTILINE)
    # The node writes its backups itself.
    assert node["ReadWritePaths"] == [f"-{backups}"]
    assert set(backup["ReadWritePaths"][0].split()) == {data, backups}


def test_the_node_starts_with_its_settings_and_stops_after_its_drain() -> None:
    settings = load(config=SYSTEMD / "sealane.yaml", environ={}).settings
    check(settings)
    assert settings.storage.disk_bytes_max is not None
    service = read_unit(NODE)["Service"]
    assert int(service["TimeoutStopSec"][0]) > ServerSettings().drain_seconds
    assert service["Type"] == ["notify"]


# --- as they run ------------------------------------------------------------------------------------------------------


def confined(unit: Path, *command: str) -> list[str]:
    return [sys.executable, "-m", "tests.deploy.confinement", str(unit), *command]


@pytest.fixture
def _seccomp(require_service: Callable[[str, bool, str], None]) -> None:
    require_service("libseccomp", confinement.is_possible(), "apt-get install libseccomp2")


@pytest.mark.usefixtures("_seccomp")
@SERVICES
def test_what_a_unit_forbids_fails(unit: Path) -> None:
    command = confined(unit, sys.executable, "-c", FORBIDDEN)
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=True)
    assert done.stdout == "[True, True, True, True]\n"


@pytest.mark.usefixtures("_seccomp")
def test_a_node_and_its_backup_run_with_what_their_units_leave_them(tmp_path: Path) -> None:
    data, backups = tmp_path / "data", tmp_path / "backups"
    backups.mkdir()
    programs = Path(sys.executable).parent
    ((_, *words),) = commands(NODE)
    words[words.index("--config") + 1] = str(SYSTEMD / "sealane.yaml")
    opened = (*FREE_PORTS, "--set=doors.grpc.enabled=on", "--set=doors.grpc.port=0")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(DEADLINE_SECONDS)
        variables = environment(SEALANE_DATA=str(data), PATH=f"{programs}:/usr/bin:/bin")
        node = subprocess.Popen(
            confined(NODE, str(programs / "sealane"), *words, *opened),
            cwd=ROOT,
            env={**variables, "NOTIFY_SOCKET": str(tmp_path / "notify")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        try:
            assert systemd.recv(1_024) == b"READY=1"
            backup = subprocess.run(
                confined(BACKUP, str(SYSTEMD / "sealane-backup"), str(data), str(backups), "7"),
                cwd=ROOT,
                env=variables,
                capture_output=True,
                text=True,
                timeout=DEADLINE_SECONDS,
                check=False,
            )
            assert backup.returncode == 0, backup.stderr
        finally:
            node.send_signal(signal.SIGTERM)
            _, log = node.communicate(timeout=DEADLINE_SECONDS)
    assert node.returncode == 0, log
    (made,) = backups.iterdir()
    assert json.loads((made / "backup.json").read_text())["files"]
