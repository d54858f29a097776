"""`make up`, at a terminal: a node in one command, and Ctrl-C ends it well."""

from __future__ import annotations

import os
import pty
import select
import time
from collections.abc import Callable
from pathlib import Path

from tests.integration.server.up import DEADLINE_SECONDS, FREE_PORTS, environment

ROOT = Path(__file__).resolve().parents[3]
CTRL_C = b"\x03"


class Terminal:
    """A command with a terminal of its own."""

    def __init__(self, *command: str) -> None:
        self.output = b""
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            try:
                os.chdir(ROOT)
                os.execvpe(command[0], command, environment())
            finally:
                os._exit(127)

    def read_until(self, text: bytes | None) -> None:
        """Until this was said; None: until there is no more."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text is None or text not in self.output:
            assert time.monotonic() < deadline, f"after {DEADLINE_SECONDS:g} s: {self.output!r}"
            if select.select([self._descriptor], [], [], 0.1)[0]:
                try:
                    said = os.read(self._descriptor, 65_536)
                except OSError:  # What a terminal says when nobody is left behind it.
                    said = b""
                if not said:
                    assert text is None, f"it ended with: {self.output!r}"
                    return
                self.output += said

    def press(self, keys: bytes) -> None:
        os.write(self._descriptor, keys)

    def wait(self) -> int:
        _, status = os.waitpid(self.pid, 0)
        os.close(self._descriptor)
        return os.waitstatus_to_exitcode(status)


def test_ctrl_c_ends_it_without_a_complaint(tmp_path: Path, require_service: Callable[[str, bool, str], None]) -> None:
    require_service("this checkout's .venv", (ROOT / ".venv" / ".setup").exists(), "make setup")
    data = tmp_path / "data"
    terminal = Terminal("make", "up", f"DATA={data}", f"ARGS={' '.join(FREE_PORTS)}")
    terminal.read_until(b"Ctrl-C stops it.")
    assert (data / "node.json").exists()
    terminal.press(CTRL_C)
    terminal.read_until(None)

    assert terminal.wait() == 0
    assert b"publish orders hello" in terminal.output
    assert b"***" not in terminal.output, "make took it for a failure"
    assert not (data / "node.json").exists()
