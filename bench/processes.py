"""Client processes of a measurement: started together, told to begin at once, and heard to the end."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any, TypeVar

ROOT = Path(__file__).parents[1]
DEADLINE_SECONDS = 300.0
ERRORS_CHARACTERS_MAX = 4_000

Result = dict[str, Any]
T = TypeVar("T")


class ClientFailed(RuntimeError):
    """A client process ended badly, or too late; carries its command and the end of what it wrote to standard error."""

    def __init__(self, command: Sequence[str], what: str, errors: str) -> None:
        super().__init__(f"`{' '.join(command)}` {what}" + (f"; it wrote:\n{errors}" if errors else ""))


def module(name: str, *arguments: object) -> list[str]:
    """The command that runs a module with this Python: `python -m NAME ARGUMENTS`."""
    return [sys.executable, "-m", name, *map(str, arguments)]


def together(commands: Sequence[Sequence[str]], deadline_seconds: float = DEADLINE_SECONDS) -> list[Result]:
    """Start all, wait until each has said `ready`, tell all to go, and return the JSON that each ends with, in order.

    A command is a client process as `bench.wire_client` describes it. Raises `ClientFailed` as soon as one fails,
    or when one is not done by the deadline. None of them is left running, whatever happens.
    """
    deadline = time.monotonic() + deadline_seconds
    with ExitStack() as ending:
        # Leaving ends the processes first: that ends the reads of these threads, which are waited for after it.
        threads = ending.enter_context(ThreadPoolExecutor(max_workers=len(commands)))
        clients = [ending.enter_context(_Client(command)) for command in commands]

        def of_each(work: Callable[[_Client], T]) -> list[T]:
            # At once for all: a process whose pipe is full would stand still until it is read.
            futures = {threads.submit(work, client): client for client in clients}
            done, late = wait(futures, max(0.0, deadline - time.monotonic()), return_when=FIRST_EXCEPTION)
            for future in done:
                future.result()
            for future in late:
                raise futures[future].failed(f"was not done within {deadline_seconds:g} s")
            return [future.result() for future in futures]

        of_each(_Client.wait_until_ready)
        for client in clients:
            client.go()
        return of_each(_Client.read_to_the_end)


def seconds_over_all(results: Sequence[Result]) -> float:
    """From the first client's beginning to the last one's end."""
    return (max(result["ended_ns"] for result in results) - min(result["begun_ns"] for result in results)) / 1e9


class _Client:
    def __init__(self, command: Sequence[str]) -> None:
        self._command = command
        # A file takes whatever is written to it, so that errors never stop a process that nobody listens to.
        self._errors: IO[str] = tempfile.TemporaryFile("w+")  # noqa: SIM115 - closed on leaving
        self._process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
        )

    def wait_until_ready(self) -> None:
        assert self._process.stdout is not None
        if (said := self._process.stdout.readline()) != "ready\n":
            raise self.failed(f"said {said!r} instead of 'ready'")

    def go(self) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("go\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self.failed("ended before it was told to go") from None

    def read_to_the_end(self) -> Result:
        assert self._process.stdout is not None
        said = self._process.stdout.read()
        if (code := self._process.wait()) != 0:
            raise self.failed(f"ended with code {code}")
        result: Result = json.loads(said)
        return result

    def failed(self, what: str) -> ClientFailed:
        self._process.kill()
        self._process.wait()
        self._errors.seek(0)
        return ClientFailed(self._command, what, self._errors.read()[-ERRORS_CHARACTERS_MAX:])

    def __enter__(self) -> _Client:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout, self._errors):
            if pipe is not None:
                pipe.close()
