"""The image: built of what is here, run by nobody in particular, and healthy when the node is."""

from __future__ import annotations

import re
import shlex
import signal
import subprocess
import sys
import tomllib
from pathlib import Path, PurePosixPath

import pytest

from sealane.server.checks import check
from sealane.server.loading import load
from sealane.server.running import STOP_SIGNALS
from tests.deploy.images import DOCKERFILE, Dockerfile, is_ignored
from tests.deploy.places import DEPLOY, DOOR_PORTS, ROOT, check_command
from tests.integration.server.up import Up, environment

IMAGE = Dockerfile(DOCKERFILE.read_text())
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).parent / "hadolint"
    found = subprocess.run([hadolint, DOCKERFILE], capture_output=True, text=True, timeout=60, check=False)
    assert (found.returncode, found.stdout) == (0, "")


def test_what_builds_stays_behind() -> None:
    build, last = IMAGE.stages
    assert build[0][1].endswith(" AS build")
    # The same base, so that the interpreter is where the environment expects it.
    assert last[0][1] == build[0][1].removesuffix(" AS build")
    assert [value for value in IMAGE.values("COPY") if value.startswith("--from=build ")] == [
        "--from=build /opt/sealane /opt/sealane"
    ]
    assert not [value for value in IMAGE.values("RUN") if "pip" in value]


def test_its_python_is_one_that_sealane_runs_on() -> None:
    (version,) = re.findall(r"^ARG PYTHON=(\S+)$", IMAGE.text, re.MULTILINE)
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_everything_is_pinned_by_the_constraints() -> None:
    installs = [value for value in IMAGE.values("RUN", stage=0) if " install " in value]
    assert installs
    assert all("--constraint constraints.txt" in value for value in installs)


def test_its_extras_exist_and_open_every_door() -> None:
    (extras,) = re.findall(r"\.whl\)\[([\w,]+)\]", IMAGE.text)
    assert set(extras.split(",")) == {"server", "grpc"} <= set(PROJECT["project"]["optional-dependencies"])


@pytest.mark.parametrize("stage", [0, 1])
def test_all_that_is_copied_exists_and_reaches_the_build(stage: int) -> None:
    sources = [source for sources, _ in IMAGE.copies(stage) for source in sources]
    assert sources
    for source in sources:
        assert (ROOT / source).exists(), source
        assert not is_ignored(source), source


def test_all_that_the_wheel_is_made_of_is_copied() -> None:
    copied = {source for sources, _ in IMAGE.copies(0) for source in sources}
    project = PROJECT["project"]
    assert {"pyproject.toml", "src", project["readme"], *project["license-files"]} <= copied


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        ".venv/bin/python",
        "sealane-data/master.key",
        "tests/conftest.py",
        "src/sealane/__pycache__/a.pyc",
    ],
)
def test_nothing_else_reaches_the_build(path: str) -> None:
    assert is_ignored(path)


def test_it_runs_as_a_user_with_a_fixed_number_who_owns_the_volume_alone() -> None:
    user, group = map(int, IMAGE.value("USER").split(":"))
    (made,) = IMAGE.values("RUN")
    assert user == group > 1_000
    assert f"--uid {user} --gid {group}" in made
    volume = IMAGE.value("VOLUME")
    assert f"install --directory --owner sealane --group sealane --mode 0700 {volume}" in made
    assert PurePosixPath(IMAGE.environment["SEALANE_DATA"]).is_relative_to(volume)


def test_its_ports_are_those_of_doors() -> None:
    assert {int(port) for port in IMAGE.value("EXPOSE").split()} <= set(DOOR_PORTS.values())


def test_its_settings_are_settings_and_a_node_starts_with_them() -> None:
    variables = IMAGE.environment
    places = {str(PurePosixPath(target)): ROOT / sources[0] for sources, target in IMAGE.copies()}
    loaded = load(environ={**variables, "SEALANE_CONFIG": str(places[variables["SEALANE_CONFIG"]])})
    check(loaded.settings)
    assert loaded.settings.data == variables["SEALANE_DATA"]
    for name in DOOR_PORTS:
        assert getattr(loaded.settings.doors, name).host == "0.0.0.0"


def test_its_commands_exist() -> None:
    for program, *words in (IMAGE.command, IMAGE.health_command):
        assert program == PROJECT["project"]["name"]
        assert program in PROJECT["project"]["scripts"]
        check_command(words)


def test_the_signal_that_stops_it_is_one_that_the_node_hears() -> None:
    assert signal.Signals[IMAGE.value("STOPSIGNAL")] in STOP_SIGNALS


def test_its_health_check_says_of_a_node_with_tls_that_it_is_ready(node: Up) -> None:
    done = subprocess.run(
        [sys.executable, "-m", *IMAGE.health_command],
        env=environment(SEALANE_DATA=str(node.data)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "ready\n"), done.stderr


def test_the_line_that_builds_it_is_right() -> None:
    (line,) = re.findall(r"^#   (docker build .*)$", IMAGE.text, re.MULTILINE)
    words = shlex.split(line)
    assert ROOT / words[words.index("--file") + 1] == DEPLOY / "docker" / "Dockerfile"
    assert words[-1] == "."
