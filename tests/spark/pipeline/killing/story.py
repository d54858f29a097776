"""The pipeline's lives: each is a process of its own, and ends well or at a point of its plan."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.spark.killing.lives import LIFE_SECONDS_MAX, life
from tests.spark.killing.plan import Deed, Plan
from tests.spark.pipeline.killing.load import TOPICS
from tests.spark.pipeline.killing.points import Moment, Point

PLACES = (("local[2,4]", 3), ("local[1,4]", 1), ("local[2,4]", 5))
"""Where the lives run, in turn, and in how many parts they shuffle. A task may fail three times."""
ONCE = ("--once",)
STAYS = ("--every", "0.1")


class Story:
    def __init__(self, directory: Path, url: str) -> None:
        self.lake = directory / "lake"
        self._directory = directory
        self._url = url
        self._log = directory / "job.log"
        self.lives = 0

    def killed_at(self, point: Point) -> None:
        """A life that is killed there: Python and Java, at once."""
        plan = self._next_plan()
        plan.add(point.kind, Deed.HOLD, point.moment)
        with self._life(plan) as job:
            plan.wait_until_held([point.kind], job)
            plan.kill(job)

    def lived(self, *worker_killed_at: Point) -> None:
        """A life that ends well, though workers are killed in it."""
        plan = self._next_plan()
        for point in worker_killed_at:
            plan.add(point.kind, Deed.KILL_EXECUTOR, point.moment)
        with self._life(plan) as job:
            assert job.wait(LIFE_SECONDS_MAX) == 0
            assert not plan.left(), "something that was to happen did not"

    def lived_through(self, point: Point, meanwhile: Callable[[], None]) -> None:
        """A life that ends well, and waits at a point until something has happened."""
        plan = self._next_plan()
        plan.add(point.kind, Deed.HOLD, point.moment)
        with self._life(plan) as job:
            plan.wait_until_held([point.kind], job)
            meanwhile()
            plan.let_go()
            assert job.wait(LIFE_SECONDS_MAX) == 0

    def killed_in_a_later_cycle(self, point: Point, meanwhile: Callable[[], None]) -> None:
        """A life that goes on from cycle to cycle. After its first one it waits until something has happened; the
        driver is killed at the point in a later one.
        """
        plan = self._next_plan()
        first = Point("history", Moment.AFTER_SPARKS_COMMIT)
        plan.add(first.kind, Deed.HOLD, first.moment)
        with self._life(plan, STAYS) as job:
            plan.wait_until_held([first.kind], job)
            meanwhile()
            plan.add(point.kind, Deed.KILL_EXECUTOR, point.moment)
            plan.let_go()
            assert job.wait(LIFE_SECONDS_MAX) == -signal.SIGKILL
            with suppress(ProcessLookupError):  # Java ends when it finds that it is alone.
                plan.kill(job)

    def _next_plan(self) -> Plan:
        """A worker may outlive its driver for a while: it keeps to the plan of its own life."""
        self.lives += 1
        return Plan(self._directory / f"plan-{self.lives}")

    @contextmanager
    def _life(self, plan: Plan, how: Sequence[str] = ONCE) -> Iterator[subprocess.Popen[bytes]]:
        """It ends with the block."""
        master, shuffle_partitions = PLACES[self.lives % len(PLACES)]
        program = [sys.executable, "-m", "tests.spark.pipeline.killing.job", str(shuffle_partitions)]
        pipeline = [
            *how,
            "--lake",
            str(self.lake),
            "--url",
            self._url,
            "--topics",
            ",".join(TOPICS),
            "--master",
            master,
        ]
        directories = [str(self._directory), *pipeline, "--data", str(self._directory / "data")]
        with life(plan, [*program, *directories], self._log) as job:
            yield job
