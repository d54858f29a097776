"""A command with the system calls that its systemd unit leaves it, without systemd: what is forbidden fails here too.

    python -m tests.deploy.confinement UNIT COMMAND …

It is held to `SystemCallFilter`, `RestrictAddressFamilies` and `MemoryDenyWriteExecute`. The rest of a unit's sandbox
is namespaces and users, which take a running systemd.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from mmap import PROT_EXEC, PROT_WRITE
from pathlib import Path
from typing import NamedTuple

from tests.deploy.units import read_unit

ALLOW = ctypes.c_uint32(0x7FFF0000)
REFUSE = ctypes.c_uint32(0x00050000 | errno.EPERM)
MASKED_EQUAL = 7
"""As `seccomp.h` numbers them."""
WHOLE = 0xFFFFFFFF


class Comparison(ctypes.Structure):
    """`struct scmp_arg_cmp`: an argument's bits under a mask are these."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operator", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


class OnlyWith(NamedTuple):
    """A call that is allowed only with certain arguments."""

    call: str
    argument: int
    mask: int
    value: int


def is_possible() -> bool:
    return ctypes.util.find_library("seccomp") is not None


def system_calls(group: str) -> set[str]:
    """All calls of a group such as `@system-service`, those of groups within it too."""
    shown = subprocess.run(["systemd-analyze", "syscall-filter", group], capture_output=True, text=True, check=True)
    lines = [line.strip() for line in shown.stdout.splitlines()[1:]]
    words = [line for line in lines if line and not line.startswith("#")]
    found = {word for word in words if not word.startswith("@")}
    return found.union(*(system_calls(word) for word in words if word.startswith("@")))


def allowed_calls(filters: list[str]) -> set[str]:
    """What is left by the lines `SystemCallFilter=` of a unit: a list of what may be, and one of what may not."""
    allowed = system_calls("@default")
    for line in filters:
        groups = line.removeprefix("~").split()
        named = set[str]().union(*map(system_calls, groups))
        allowed = allowed - named if line.startswith("~") else allowed | named
    return allowed


def restricted_calls(service: dict[str, list[str]]) -> Iterator[OnlyWith]:
    for family in service["RestrictAddressFamilies"][-1].split():
        yield OnlyWith("socket", 0, WHOLE, getattr(socket, family))
    if service["MemoryDenyWriteExecute"] == ["yes"]:
        # No memory that can be written and run, and none that becomes code later.
        for protection in (0, PROT_WRITE, PROT_EXEC):
            yield OnlyWith("mmap", 2, PROT_WRITE | PROT_EXEC, protection)
        for call in ("mprotect", "pkey_mprotect"):
            yield OnlyWith(call, 2, PROT_EXEC, 0)


def confine(unit: Path) -> None:
    """Hold this process, and all that it becomes and starts, to the unit. There is no way back."""
    service = read_unit(unit)["Service"]
    restricted = list(restricted_calls(service))
    seccomp = ctypes.CDLL(ctypes.util.find_library("seccomp"))
    seccomp.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(seccomp.seccomp_init(REFUSE))

    def allow(call: str, *comparisons: Comparison) -> None:
        number = seccomp.seccomp_syscall_resolve_name(call.encode())
        # Calls of other architectures have numbers below 0.
        if number >= 0:
            _done(seccomp.seccomp_rule_add(context, ALLOW, number, len(comparisons), *comparisons))

    for call in allowed_calls(service["SystemCallFilter"]) - {each.call for each in restricted}:
        allow(call)
    for each in restricted:
        allow(each.call, Comparison(each.argument, MASKED_EQUAL, each.mask, each.value))
    _done(seccomp.seccomp_load(context))


def _done(code: int) -> None:
    if code:
        raise OSError(-code, os.strerror(-code))


if __name__ == "__main__":
    confine(Path(sys.argv[1]))
    os.execv(sys.argv[2], sys.argv[2:])
