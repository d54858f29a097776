from __future__ import annotations

import asyncio
import random
from dataclasses import replace

import pytest

from tests.simulation.faults import EVERYTHING, ON_OPERATION, Fault, draw_fault
from tests.simulation.history import ClockJumped, Damaged, Started, StartFailed, Stopped
from tests.simulation.scenario import Scenario, Step
from tests.simulation.toy import ToyQueue, draw_toy
from tests.simulation.world import Life, run


def kinds(report):
    return [type(entry.event) for entry in report.history]


def test_the_honest_toy_passes_every_seed():
    for seed in range(60):
        report = run(draw_toy(seed), ToyQueue)
        assert not report.failed, (seed, report.violations)


def test_a_seed_gives_the_same_run_each_time():
    first, again = ([run(draw_toy(seed), ToyQueue).digest for seed in range(20)] for _ in range(2))
    assert first == again
    assert len(set(first)) == 20


class Idle:
    """Does nothing, and lets a test look in."""

    def __init__(self, life: Life) -> None:
        self.life = life

    async def start(self) -> None: ...
    async def perform(self, step: Step) -> None: ...
    async def finish(self) -> None: ...
    async def stop(self) -> None: ...


def one_step(*faults, verb="wait", after=10.0, **settings):
    return Scenario("idle", 0, (Step("a", verb, after=after),), tuple(faults), settings)


@pytest.mark.parametrize(("kind", "how"), [("kill", "kill"), ("power_loss", "power"), ("restart", "orderly")])
def test_a_fault_at_a_moment_ends_the_life_and_the_step_is_done_in_the_next(kind, how):
    done = []

    class Notes(Idle):
        async def perform(self, step):
            done.append((self.life.number, self.life.loop.time()))

    report = run(one_step(Fault(kind, 5.0)), Notes)
    assert not report.failed
    assert report.lives == 3, "until the fault, the rest of the steps, the last life"
    assert [e.event.how for e in report.history if isinstance(e.event, Stopped)] == [how]
    assert [number for number, _ in done] == [2]
    assert done[0][1] == pytest.approx(15.0, abs=0.01)


@pytest.mark.parametrize("kind", sorted(ON_OPERATION - {"sync_error", "write_error"}))
def test_a_crash_on_a_disk_operation_ends_the_life(kind):
    class Writes(Idle):
        async def perform(self, step):
            self.life.files.open("f", create=True).write_at(0, [b"x"])

    report = run(one_step(Fault(kind, 1, power=False)), Writes)
    assert not report.failed
    assert report.faults_happened == 1
    assert report.lives == 3


def test_the_wall_clock_jumps_and_rot_is_recorded():
    class Writes(Idle):
        async def start(self):
            if self.life.number == 1:
                file = self.life.files.open("f", create=True)
                for position in (0, 100):
                    file.write_at(position, [b"x" * 100])
                    file.sync()
                self.life.files.sync_directory("")

    report = run(one_step(Fault("clock_jump", 1.0, seconds=-60), Fault("bit_flip", 2.0)), Writes)
    assert [e.event for e in report.history if isinstance(e.event, ClockJumped)] == [ClockJumped(-60)]
    assert kinds(report).count(Damaged) == 1


def test_a_full_or_slow_disk_recovers_after_its_time_even_across_a_crash():
    seen = []

    class Looks(Idle):
        async def start(self):
            await asyncio.sleep(2.5)
            seen.append((self.life.number, self.life.files.free_bytes()))

    report = run(one_step(Fault("full_disk", 1.0, seconds=30.0, amount=7), Fault("kill", 5.0), after=3.0), Looks)
    assert not report.failed
    assert [number for number, free in seen if free == 7] == [2]
    assert seen[-1][1] > 1_000_000


def test_a_start_may_fail_while_there_are_faults_but_not_in_the_last_life():
    class StartsTheSecondTime(Idle):
        async def start(self):
            if self.life.number == 1:
                raise OSError("not yet")

    class NeverStarts(Idle):
        async def start(self):
            if self.life.number > 1:
                raise OSError("never again")

    assert kinds(run(one_step(), StartsTheSecondTime)) == [Started, StartFailed, Stopped, Started, Started]
    report = run(one_step(), NeverStarts)
    assert [violation.oracle for violation in report.violations] == ["starts_again"]
    assert "never again" in report.violations[0].problem


def test_errors_hangs_and_tasks_left_behind_are_findings():
    kept = []

    class Raises(Idle):
        async def perform(self, step):
            raise ValueError("what is this?")

    class Hangs(Idle):
        async def perform(self, step):
            await self.life.loop.create_future()

    class LeavesATask(Idle):
        async def perform(self, step):
            kept.append(asyncio.create_task(asyncio.sleep(1000), name="left"))

    class DiesInTheBackground(Idle):
        async def perform(self, step):
            async def die():
                raise ValueError("alone")

            task = asyncio.create_task(die())
            await asyncio.sleep(1)
            del task

    for subject, oracle, text in (
        (Raises, "no_unexpected_error", "ValueError: what is this?"),
        (Hangs, "keeps_running", "actor a"),
        (LeavesATask, "nothing_left_running", "left"),
        (DiesInTheBackground, "no_unexpected_error", "alone"),
    ):
        [violation] = run(one_step(), subject).violations
        assert violation.oracle == oracle
        assert text in violation.problem


def test_a_subject_may_ask_for_a_new_life_and_a_dead_life_records_nothing():
    class GivesUp(Idle):
        async def perform(self, step):
            if self.life.number == 1:
                self.life.end("power")
                self.life.record(StartFailed("seen by a dead life"))

    report = run(replace(one_step(), steps=(Step("a", "x"), Step("a", "y"))), GivesUp)
    assert report.lives == 3
    assert StartFailed not in kinds(report)


def test_every_kind_of_fault_can_be_drawn():
    rng = random.Random(0)
    for kind in EVERYTHING:
        fault = draw_fault(rng, kind, seconds=10, operations=100)
        assert fault.kind == kind
        assert fault.at <= (100 if kind in ON_OPERATION else 10)
