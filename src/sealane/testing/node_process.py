"""A real node in a process of its own, for tests that restart or kill one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from sealane.client.profiles import ADMIN_PROFILE

START_SECONDS = 60.0
STOP_SECONDS = 60.0
LOOK_SECONDS = 0.002


class NodeProcess:
    """`sealane up --insecure` on free loopback ports, with its data in a directory that outlives the process.

    `NodeProcess.secure(data)` is one with TLS and authentication, as users have it; its `profile` is the admin's.

        with NodeProcess(tmp_path / "data") as node:
            lane = sealane.connect_sync(node.url)
            node.kill()            # as the machine's power would
            node.start()           # the same data, and the same ports

    `settings` are written as in the settings file: `{"storage.segment_bytes": 65536}`.
    """

    def __init__(self, data: Path, settings: Mapping[str, object] | None = None, *, insecure: bool = True) -> None:
        self.data = data
        self._insecure = insecure
        self._settings = {"doors.native.port": 0, "doors.http.port": 0, **(settings or {})}
        self._ready_file = data.with_name(f"{data.name}.ready.json")
        self.log_file = data.with_name(f"{data.name}.log")
        """What the node says, of all its lives."""
        self._process: subprocess.Popen[bytes] | None = None
        self.doors: dict[str, str] = {}
        """Where its doors are, by name, since its first start."""

    @classmethod
    def secure(cls, data: Path, settings: Mapping[str, object] | None = None) -> Self:
        return cls(data, settings, insecure=False)

    @property
    def url(self) -> str:
        return f"{'sealane' if self._insecure else 'sealanes'}://{self.doors['native']}"

    @property
    def profile(self) -> Path:
        """How the admin of a secure one comes in; there once it has started."""
        return self.data / ADMIN_PROFILE

    @property
    def pid(self) -> int:
        assert self._process is not None, "the node is not running"
        return self._process.pid

    def start(self, *, wait: bool = True) -> Self:
        """Start it, and return when its doors answer; from the second start on, where they were before."""
        self._ready_file.unlink(missing_ok=True)
        for name, address in self.doors.items():
            self._settings[f"doors.{name}.port"] = int(address.rpartition(":")[2])
        pairs = [f"--set={name}={value}" for name, value in self._settings.items()]
        insecure = ["--insecure"] if self._insecure else []
        command = [sys.executable, "-m", "sealane", "up", *insecure, "--data", str(self.data), *pairs]
        with self.log_file.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own program, our own arguments
                [*command, "--ready-file", str(self._ready_file)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # A test's node has the settings that the test gives it, and no others.
                env={name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")},
            )
        if wait:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        """Return when its doors answer. Raises with the end of its log if it ends instead."""
        deadline = time.monotonic() + START_SECONDS
        while not self._ready_file.exists():  # It appears whole.
            ended = self._process is None or self._process.poll() is not None
            if ended or time.monotonic() > deadline:
                what = "ended" if ended else f"was not ready within {START_SECONDS:g} s"
                raise RuntimeError(f"the node {what}; its log ends with:\n{self.log_file.read_text()[-4_000:]}")
            time.sleep(LOOK_SECONDS)
        self.doors = json.loads(self._ready_file.read_text())["doors"]

    def send(self, number: signal.Signals) -> None:
        """Send it a signal."""
        assert self._process is not None, "the node is not running"
        self._process.send_signal(number)

    def wait(self, seconds: float = STOP_SECONDS) -> int:
        """Its exit code, once it has ended. Raises `subprocess.TimeoutExpired` if it has not."""
        if self._process is None:
            return 0
        code = self._process.wait(seconds)
        self._process = None
        return code

    def kill(self) -> None:
        """End it as a crash would, at once and in the middle of whatever it does."""
        self._end(signal.SIGKILL)

    def stop(self) -> int:
        """Ask it to end, as an operator would; returns its exit code."""
        return self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> int:
        if self._process is None:
            return 0
        self.send(number)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.send(signal.SIGKILL)
            self.wait()
            raise

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(signal.SIGTERM if kind is None else signal.SIGKILL)
