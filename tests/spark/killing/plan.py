"""What is to happen at a step of a write: a file for each step, taken away by who does it, so that it happens once.

The job's processes are many, and some are started by Java: they find the plan by the environment, which all inherit.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Collection
from enum import StrEnum
from pathlib import Path

DIRECTORY = "SEALANE_TEST_PLAN"
HELD_SECONDS_MAX = 240.0
LOOK_SECONDS = 0.01


class Step(StrEnum):
    """Where in a write something can happen, in the order in which a write comes by."""

    BEFORE_STAGING = "before-staging"
    BETWEEN_STAGES = "between-stages"
    AFTER_STAGING = "after-staging"
    BEFORE_PUBLISHING = "before-publishing"
    AFTER_PUBLISHING = "after-publishing"
    AFTER_THE_COMMIT_LOG = "after-the-commit-log"


class Deed(StrEnum):
    """What happens there."""

    KILL_EXECUTOR = "kill-executor"
    KILL_ITS_JAVA = "kill-its-java"
    """Of a worker on a cluster: the executor that it works for. The worker goes on, until it finds that out."""
    HOLD = "hold"
    """Wait there until all may go on, or until the driver is killed."""


WRITING = (Step.BEFORE_STAGING, Step.BETWEEN_STAGES, Step.AFTER_STAGING)
"""The steps that an executor takes."""


class Plan:
    """Of one life of the job. A write is known by the topic that it goes to."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        directory.mkdir(exist_ok=True)

    @classmethod
    def of_this_job(cls) -> Plan:
        return cls(Path(os.environ[DIRECTORY]))

    def add(self, topic: str, deed: Deed, step: StrEnum) -> None:
        self._file(topic, deed, step).touch()

    def left(self) -> list[str]:
        """What has not happened yet."""
        return sorted(path.name for path in self.directory.iterdir() if path.suffix != ".said")

    def come_by(self, topic: str, step: StrEnum) -> None:
        """Called by the job: returns, or does not."""
        if self._take(self._file(topic, Deed.KILL_EXECUTOR, step)):
            os.kill(os.getpid(), signal.SIGKILL)
        if self._take(self._file(topic, Deed.KILL_ITS_JAVA, step)):
            os.kill(_java_of_a_cluster(), signal.SIGKILL)
        if self._take(self._file(topic, Deed.HOLD, step)):
            self._said(f"{topic} held").touch()
            self._wait(lambda: self._said("go").exists() or self._said("dead").exists(), "that it may go on")
            if self._said("dead").exists():
                # A worker is no part of the driver's group, and may outlive it for a while.
                os.kill(os.getpid(), signal.SIGKILL)

    def wait_until_held(self, topics: Collection[str], job: subprocess.Popen[bytes]) -> None:
        """Until the writes to all of these topics have come to where they wait."""

        def all_held() -> bool:
            assert job.poll() is None, f"the job has ended with {job.returncode}; not happened: {self.left()}"
            return all(self._said(f"{topic} held").exists() for topic in topics)

        self._wait(all_held, "that all is held")

    def let_go(self) -> None:
        self._said("go").touch()

    def kill(self, job: subprocess.Popen[bytes]) -> None:
        """The driver's Python and Java, which are one group, and workers that wait."""
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        self._said("dead").touch()

    def _wait(self, done: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + HELD_SECONDS_MAX
        while not done():
            assert time.monotonic() < deadline, f"waited {HELD_SECONDS_MAX:g} s {what}; not happened: {self.left()}"
            time.sleep(LOOK_SECONDS)

    def _file(self, topic: str, deed: Deed, step: StrEnum) -> Path:
        return self.directory / f"{topic} {deed} {step}"

    def _said(self, word: str) -> Path:
        return self.directory / f"{word}.said"

    @staticmethod
    def _take(path: Path) -> bool:
        try:
            path.unlink()
        except FileNotFoundError:
            return False
        return True


def _java_of_a_cluster() -> int:
    """A Python worker is a child of its daemon, which is a child of the executor."""
    found = int(Path(f"/proc/{os.getppid()}/stat").read_text().rpartition(")")[2].split()[1])
    assert b"CoarseGrainedExecutorBackend" in Path(f"/proc/{found}/cmdline").read_bytes(), "it is no executor"
    return found
