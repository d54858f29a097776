"""`sealane up` as a user starts it: a real process, whose output and end can be looked at."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.request import urlopen

DEADLINE_SECONDS = 60.0

FREE_PORTS = ("--set=doors.native.port=0", "--set=doors.http.port=0")


def environment(**variables: str) -> dict[str, str]:
    """This environment without settings that a developer may have in theirs, and with these."""
    mine = {name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")}
    return {**mine, "PYTHONUNBUFFERED": "1", "NO_COLOR": "1", **variables}


def sealane(*arguments: str, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [sys.executable, "-m", "sealane", *arguments],
        cwd=cwd,
        env=environment(**variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )


class Up:
    """A node that was started by `sealane up` in a directory, with its data there."""

    def __init__(
        self, directory: Path, *arguments: str, ports: tuple[str, ...] = FREE_PORTS, insecure: bool = True
    ) -> None:
        self._insecure = insecure
        self.directory = directory
        self.data = directory / "sealane-data"
        self.ready_file = directory / "ready.json"
        self._arguments = [*ports, *arguments]

    def __enter__(self) -> Self:
        insecure = ["--insecure"] if self._insecure else []
        command = [sys.executable, "-m", "sealane", "up", *insecure, "--ready-file", str(self.ready_file)]
        self.process = subprocess.Popen(
            [*command, *self._arguments],
            cwd=self.directory,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self._wait_ready()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def _wait_ready(self) -> None:
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not self.ready_file.exists():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                raise AssertionError(f"the node did not become ready:\n{self.process.communicate()}")
            time.sleep(0.01)
        self.ready: dict[str, Any] = json.loads(self.ready_file.read_text())

    def get(self, path: str) -> bytes:
        scheme, tls = "http", None
        if not self._insecure:
            scheme, tls = "https", ssl.create_default_context(cafile=self.data / "identity" / "ca.crt")
        with urlopen(
            f"{scheme}://{self.ready['doors']['http']}{path}", timeout=DEADLINE_SECONDS, context=tls
        ) as answer:
            content: bytes = answer.read()
            return content

    def end(self, number: signal.Signals) -> tuple[int, str, str]:
        """Send a signal, and return exit code, output and log."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=DEADLINE_SECONDS)
        return self.process.returncode, out, err

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()
        for stream in (self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()
