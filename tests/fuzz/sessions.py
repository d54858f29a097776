"""A target for some time, with a line that says how it goes, and what is worth it kept in the end."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from tests.fuzz.distilling import distilled
from tests.fuzz.guided import SLOW, command, command_for_one
from tests.fuzz.keeping import CORPUS, FOUND, keep, kept
from tests.fuzz.running import Finding, Tally, quiet, run, try_one
from tests.fuzz.target import Target

TOLD_SECONDS = 1.0
_PROGRESS = re.compile(r"#(\d+)\s.*?cov: (\d+)")


class _Line:
    """What stands at the terminal's last line while a target runs; where there is no terminal, only its end."""

    def __init__(self, target: Target, seconds: float) -> None:
        self._name = target.name
        self._stop = time.monotonic() + seconds
        self._next = 0.0

    def tell(self, text: object) -> None:
        now = time.monotonic()
        if now >= self._next and sys.stderr.isatty():
            self._next = now + TOLD_SECONDS
            print(f"\r\033[K{self._name}: {text}, {max(0, self._stop - now):.0f} s left", end="", file=sys.stderr)

    def end(self, text: object) -> None:
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr)
        print(f"{self._name}: {text}", flush=True)


def plain_session(target: Target, seconds: float, seed: int) -> bool:
    """Unguided, in this process. Whether nothing was found."""
    line = _Line(target, seconds)
    try:
        tally = run(target, seed=seed, seconds=seconds, told=line.tell)
    except Finding as finding:
        line.end(_kept_finding(target, finding.data, finding))
        return False
    line.end(f"{tally}, {keep_fresh(target, tally.fresh)} kept, nothing found")
    return True


def guided_session(target: Target, seconds: float, seed: int) -> bool:
    """Under atheris, in a process of its own. Whether nothing was found."""
    line = _Line(target, seconds)
    with tempfile.TemporaryDirectory(prefix="sealane-fuzz-") as directory:
        corpus, artifacts = Path(directory, "corpus"), Path(directory, "artifacts")
        artifacts.mkdir()
        for data in (*target.seeds, *kept(target.name)):
            keep(corpus.parent, corpus.name, data)
        last = ""
        said: list[str] = []
        with subprocess.Popen(  # our own program, our own arguments
            command(target.name, str(corpus), str(artifacts), round(seconds), seed),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        ) as process:
            assert process.stderr is not None
            for words in process.stderr:
                said = [*said[-40:], words]
                progress = _PROGRESS.search(words)
                if progress is not None:
                    last = f"{int(progress[1]):,} inputs, {int(progress[2]):,} places reached"
                    line.tell(last)
        suspected = sorted(artifacts.iterdir())
        findings = [path.read_bytes() for path in suspected if _fails_alone(target, path)]
        for data in findings:
            line.end(_kept_finding(target, data, "".join(said)))
        if findings:
            return False
        if process.returncode and not suspected:
            line.end(f"atheris ended with {process.returncode}:\n{''.join(said)}")
            return False
        early = ", ended early by an input that is not slow by itself" if process.returncode else ""
        inputs = [path.read_bytes() for path in corpus.iterdir()]
        line.end(f"{last}{early}, {keep_fresh(target, inputs)} kept, nothing found")
    return True


def _fails_alone(target: Target, artifact: Path) -> bool:
    """Whether it is a finding: any input looks slow while its process is stopped, or the machine stands still."""
    if not artifact.name.startswith(SLOW):
        return True
    again = subprocess.run(  # our own program, our own arguments
        command_for_one(target.name, str(artifact)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return again.returncode != 0


def _kept_finding(target: Target, data: bytes, why: object) -> str:
    return f"{why}\nThe input is kept as {keep(FOUND, target.name, data)}."


def keep_fresh(target: Target, inputs: Iterable[bytes]) -> int:
    """Keep those that reach something new; how many there were."""
    with quiet():
        chosen = distilled(target, (data for data in inputs if _is_sound(target, data)), kept(target.name))
    for data in chosen:
        keep(CORPUS, target.name, data)
    return len(chosen)


def _is_sound(target: Target, data: bytes) -> bool:
    try:
        try_one(target, data, Tally())
    except Finding:
        return False
    return True
