"""Servers that the bench installs for itself, as Debian packages, without starting their services."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

POLICY = Path("/usr/sbin/policy-rc.d")
"""Asked by every Debian package before it starts a service; 101 is no."""
FORBIDDEN = 101
INSTALL_SECONDS_MAX = 300.0
PLACES = ("/usr/local/sbin", "/usr/sbin", "/sbin")
"""Where servers live, which is not on everyone's path."""


def program(name: str) -> str | None:
    """Where a program is, if it is installed."""
    return shutil.which(name, path=os.pathsep.join((os.environ.get("PATH", os.defpath), *PLACES)))


def install_line(package: str) -> str:
    """What to run to have a Debian package."""
    return f"sudo apt-get install {package}"


@cache
def install(package: str, *services: str) -> str | None:
    """Install a Debian package with apt-get, once in this process's life; None when it is there, or why it is not.

    Only as root, only where apt-get is, and only where it is certain that none of the package's services is started.
    The services that it brings are left disabled: the machine is to be what it was when it starts the next time.
    """
    if program("apt-get") is None:
        return "there is no apt-get here"
    if os.geteuid() != 0:
        return "only root can install it"
    if POLICY.exists() and _policy_answers(services) != FORBIDDEN:
        return f"{POLICY} would let its service start"
    with _no_service_starts():
        said = _apt("install", "-y", "--no-install-recommends", package)
        if said is not None:
            _apt("update")  # Lists that are missing, or too old to be of use.
            said = _apt("install", "-y", "--no-install-recommends", package)
    if said is None and Path("/run/systemd/system").is_dir():
        subprocess.run(["systemctl", "disable", *services], check=False, capture_output=True)
    return said


def _apt(*arguments: str) -> str | None:
    """None, or the last thing that apt-get said when it failed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "-q", "-o", "DPkg::Lock::Timeout=60", *arguments]
    try:
        ended = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=INSTALL_SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return f"apt-get was not done within {INSTALL_SECONDS_MAX:g} s"
    if ended.returncode == 0:
        return None
    return next((line for line in reversed(ended.stdout.splitlines()) if line.strip()), "apt-get failed")


def _policy_answers(services: tuple[str, ...]) -> int:
    """The policy's answer to a start of each of these; `FORBIDDEN` only if it forbids them all."""
    codes = {subprocess.run([POLICY, name, "start"], check=False, capture_output=True).returncode for name in services}
    return FORBIDDEN if codes <= {FORBIDDEN} else 0


@contextmanager
def _no_service_starts() -> Iterator[None]:
    """Meanwhile packages that are installed start nothing. A policy that is already there has said so itself."""
    if POLICY.exists():
        yield
        return
    # Should this process be killed before it takes the file away, the file forbids nothing from then on.
    POLICY.write_text(f"#!/bin/sh\n[ -d /proc/{os.getpid()} ] && exit {FORBIDDEN}\nexit 0\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink(missing_ok=True)
