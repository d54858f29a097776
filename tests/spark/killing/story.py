"""The job's life: started, killed at a step, started again, and what the topics hold after each of its lives."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import sealane
from sealane.testing.node_process import NodeProcess
from tests.spark.killing.job import BATCH_ROWS, BATCHES, MICRO_BATCH_ROWS, SOURCE_TOPIC, STREAMS
from tests.spark.killing.lives import life
from tests.spark.killing.plan import Deed, Plan, Step

MICRO_BATCHES = 3
BATCH_EXPECTED = Counter({str(number).encode(): 1 for number in range(BATCH_ROWS)})
STREAM_EXPECTED = [
    Counter({f"{batch}-{row}".encode(): 1 for row in range(MICRO_BATCH_ROWS)}) for batch in range(MICRO_BATCHES)
]
"""What each micro-batch holds."""


class Story:
    def __init__(self, directory: Path, node: NodeProcess) -> None:
        self.node = node
        self._directory = directory
        self._log = directory / "job.log"
        self._lives = 0
        with sealane.connect_sync(node.url) as lane:
            for topic in (*BATCHES, *STREAMS):
                lane.create_topic(topic, partitions=2)
            for expected in STREAM_EXPECTED:
                lane.publish_many(SOURCE_TOPIC, list(expected))

    def next_plan(self) -> Plan:
        """A worker may outlive its driver for a while: it keeps to the plan of its own life."""
        self._lives += 1
        return Plan(self._directory / f"plan-{self._lives}")

    @contextmanager
    def life(self, plan: Plan) -> Iterator[subprocess.Popen[bytes]]:
        """A life of the job, with another number of partitions than the one before. It ends with the block."""
        partitions = (2, 1, 3)[self._lives % 3]
        job = [sys.executable, "-m", "tests.spark.killing.job", self.node.url, str(self._directory), str(partitions)]
        with life(plan, job, self._log) as process:
            yield process

    def killed_at(self, steps: Mapping[str, Step]) -> dict[str, Counter[bytes]]:
        """What each topic holds after a life that was killed when the write to each of these had come to its step."""
        plan = self.next_plan()
        for topic, step in steps.items():
            plan.add(topic, Deed.HOLD, step)
        with self.life(plan) as job:
            plan.wait_until_held(steps, job)
            plan.kill(job)
        return self.seen()

    def seen(self) -> dict[str, Counter[bytes]]:
        """What a reader can see, payload by payload."""
        with sealane.connect_sync(self.node.url) as lane:
            return {topic: payloads(lane, topic) for topic in (*BATCHES, *STREAMS)}


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
