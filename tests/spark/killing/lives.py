"""A life of a job that is killed: a process of its own, with Java in its process group, and a plan."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.spark.killing.plan import DIRECTORY, Plan

ROOT = Path(__file__).parents[3]
LIFE_SECONDS_MAX = 300.0
"""A life takes ten seconds, and more where many things run at once."""


@contextmanager
def life(plan: Plan, command: Sequence[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """It ends with the block. What goes wrong in that has the end of the job's log as a note."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": python_path(), DIRECTORY: str(plan.directory)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield process
    except BaseException as error:
        error.add_note(log.read_text(errors="replace")[-6_000:])
        raise
    finally:
        if process.poll() is None:
            plan.kill(process)


def python_path() -> str:
    """Workers import the tests too, wherever Spark starts them."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
