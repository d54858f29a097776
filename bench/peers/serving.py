"""A server process of a peer: started on the loopback, waited for, and ended by its process id."""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

START_SECONDS_MAX = 60.0
STOP_SECONDS_MAX = 20.0
LOOK_SECONDS = 0.02
LOG_CHARACTERS_MAX = 4_000
SET_PARENT_DEATH_SIGNAL = 1
"""To `prctl`, of Linux."""


def free_ports(count: int) -> list[int]:
    """Ports of the loopback that nobody listens on, all different."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    try:
        return [each.getsockname()[1] for each in sockets]
    finally:
        for each in sockets:
            each.close()


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, environment: Mapping[str, str] | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """The server while it runs, from when its port answers. Its process has ended when this is left.

    It has a process group of its own, so that a Ctrl-C ends the measurement first and the server through it.
    Should this process be killed, the kernel ends the server.
    """
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=log.parent,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        _wait_for(process, port, log)
        yield process
    finally:
        end(process)


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask it to end, and make it end if it does not."""
    process.terminate()
    try:
        process.wait(STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def answers(port: int) -> bool:
    """Whether somebody listens there."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True


def first_line(*command: str) -> str:
    """The first line that a program says, such as its version; empty if it says nothing."""
    ended = subprocess.run(command, capture_output=True, text=True, check=False, timeout=START_SECONDS_MAX)
    return next(iter((ended.stdout or ended.stderr).splitlines()), "").strip()


def _end_with_parent() -> None:
    ctypes.CDLL(None).prctl(SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS_MAX
    while not answers(port):
        ended = process.poll() is not None
        if ended or time.monotonic() > deadline:
            what = "ended" if ended else f"did not answer within {START_SECONDS_MAX:g} s"
            said = log.read_text(errors="replace")[-LOG_CHARACTERS_MAX:]
            raise RuntimeError(f"{process.args!r} {what}; its log ends with:\n{said}")
        time.sleep(LOOK_SECONDS)
