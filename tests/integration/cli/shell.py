"""The command line as a user types it, against a node of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from typer.testing import CliRunner

from sealane.cli.main import app
from tests.integration.server.up import environment

DEADLINE_SECONDS = 90.0
WITHOUT_PIPES = frozenset(
    {
        "account",
        "audit",
        "ca",
        "cipher",
        "grant",
        "key",
        "quota",
        "recipient",
        "schema",
        "topic",
        "subscription",
        "exchange",
        "dlq",
        "status",
        "bench",
        "webhook",
    }
)
"""Commands that neither read standard input nor write it past Python."""


class Shell:
    """Runs `sealane` commands beside a node's data directory, which is how they find it."""

    def __init__(self, data: Path) -> None:
        self.data = data
        # A profile of whoever runs the tests must not be found, and the terminal's size is that of the test.
        mine = environment(SEALANE_DATA=str(data), XDG_CONFIG_HOME=str(data / "nobody"))
        self.environment = {name: value for name, value in mine.items() if name not in ("COLUMNS", "LINES")}

    def start(self, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        """A command that goes on while the test looks at it."""
        pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        command = [sys.executable, "-m", "sealane", *arguments]
        return subprocess.Popen(command, env=self.environment, **{**pipes, **options})

    def run(self, *arguments: str, input: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        """A command to its end, however it ends."""
        if arguments[0] in WITHOUT_PIPES and not input:
            return self._run_here(*arguments)
        process = self.start(*arguments, stdin=subprocess.PIPE)
        out, err = process.communicate(input, timeout=DEADLINE_SECONDS)
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def _run_here(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        """In this process: it spares a start, which takes longer than all that most commands do."""
        unset = {name: None for name in os.environ if name not in self.environment}
        result = CliRunner().invoke(app, arguments, env={**unset, **self.environment})
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout_bytes, result.stderr_bytes)

    def text(self, *arguments: str, input: bytes = b"") -> str:
        """What a command that must work wrote."""
        done = self.run(*arguments, input=input)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout.decode()

    def json(self, *arguments: str, input: bytes = b"") -> Any:
        return json.loads(self.text(*arguments, input=input))

    def objects(self, *arguments: str, input: bytes = b"") -> list[Any]:
        """A JSON object a line."""
        return [json.loads(line) for line in self.text(*arguments, input=input).splitlines()]

    def depth(self, topic: str, subscription: str) -> int:
        found: int = self.json("subscription", "show", topic, subscription, "--json")["depth"]
        return found


def close(process: subprocess.Popen[bytes]) -> None:
    """End what may still run, and its pipes."""
    if process.poll() is None:
        process.kill()
    process.wait(DEADLINE_SECONDS)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()


def write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]
