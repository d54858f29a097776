"""The job's life: started, killed at a step, started again, and what the topics hold after each of its lives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import sealane
from sealane.testing.node_process import NodeProcess
from tests.spark.killing.job import BATCH_ROWS, BATCH_TOPIC, MICRO_BATCH_ROWS, SOURCE_TOPIC, STREAM_TOPIC
from tests.spark.killing.plan import DIRECTORY, Deed, Plan, Step

ROOT = Path(__file__).parents[3]
LIFE_SECONDS_MAX = 300.0
"""A life takes ten seconds, and more where many things run at once."""
MICRO_BATCHES = 3
BATCH_EXPECTED = Counter({str(number).encode(): 1 for number in range(BATCH_ROWS)})
STREAM_EXPECTED = [
    Counter({f"{batch}-{row}".encode(): 1 for row in range(MICRO_BATCH_ROWS)}) for batch in range(MICRO_BATCHES)
]
"""What each micro-batch holds."""


class Seen(NamedTuple):
    """What a reader can see, payload by payload."""

    batch: Counter[bytes]
    stream: Counter[bytes]


class Story:
    def __init__(self, directory: Path, node: NodeProcess) -> None:
        self.node = node
        self._directory = directory
        self._log = directory / "job.log"
        self._lives = 0
        self.plan = self._next_plan()
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(BATCH_TOPIC, partitions=2)
            lane.create_topic(STREAM_TOPIC, partitions=2)
            for expected in STREAM_EXPECTED:
                lane.publish_many(SOURCE_TOPIC, list(expected))

    def start(self, kind: str) -> subprocess.Popen[bytes]:
        """A life of the job, with another number of partitions than the one before."""
        partitions = (3, 1, 4, 2)[self._lives % 4]
        job = [sys.executable, "-m", "tests.spark.killing.job", self.node.url, str(self._directory), str(partitions)]
        with self._log.open("ab") as log:
            return subprocess.Popen(
                [*job, kind],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": python_path(), DIRECTORY: str(self.plan.directory)},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def killed_at(self, kind: str, step: Step) -> Seen:
        """What is seen after a life that ended at this step."""
        self.plan.add(kind, Deed.KILL_DRIVER, step)
        code = wait(self.start(kind))
        assert code == -signal.SIGKILL, (
            f"the job was to be killed at {kind} {step}, and ended with {code}:\n{self.log()}"
        )
        assert not self.plan.left()
        self.plan = self._next_plan()
        return self.seen()

    def _next_plan(self) -> Plan:
        """A worker may outlive its driver for a while: it keeps to the plan of its own time."""
        self._lives += 1
        return Plan(self._directory / f"plan-{self._lives}")

    def lived(self, job: subprocess.Popen[bytes]) -> Seen:
        """What is seen after a life that ended well."""
        code = wait(job)
        assert code == 0, f"the job ended with {code}:\n{self.log()}"
        return self.seen()

    def seen(self) -> Seen:
        with sealane.connect_sync(self.node.url) as lane:
            return Seen(payloads(lane, BATCH_TOPIC), payloads(lane, STREAM_TOPIC))

    def log(self) -> str:
        return self._log.read_text(errors="replace")[-6_000:]


def python_path() -> str:
    """Workers import the tests too, wherever Spark starts them."""
    return os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))


def wait(job: subprocess.Popen[bytes]) -> int:
    """How it ended. One that does not is ended here, all of it."""
    try:
        return job.wait(LIFE_SECONDS_MAX)
    finally:
        if job.poll() is None:
            os.killpg(job.pid, signal.SIGKILL)
            job.wait()


def payloads(lane: sealane.SyncLane, topic: str) -> Counter[bytes]:
    """Everything that the topic holds."""
    found: Counter[bytes] = Counter()
    for log in lane.logs(topic):
        for partition in log.partitions:
            position = partition.start
            while stored := lane.browse(topic, partition.partition, position):
                for part in stored:
                    found.update(part.batch.payloads())
                    position = part.stop
    return found
