"""A world runs one scenario: life after life of the process on one disk and one clock, recorded from outside.

The actors' steps are done in working lives, which faults end. Then comes a last life without faults, in which what is
under test starts once more and shows what it kept. The oracles judge the record.
"""

from __future__ import annotations

import asyncio
import gc
import hashlib
import random
import traceback
import warnings
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast

from tests.simulation.disk import DiskFault, DiskFaultKind, SimDisk, SimFiles
from tests.simulation.ends import Crashed, SimulationStopped
from tests.simulation.faults import ON_OPERATION, Fault
from tests.simulation.history import (
    ClockJumped,
    Damaged,
    Entry,
    Event,
    History,
    Started,
    StartFailed,
    Stopped,
)
from tests.simulation.loop import VirtualClock, VirtualLoop
from tests.simulation.oracles import Violation, judge
from tests.simulation.runner import SimRunner
from tests.simulation.scenario import Scenario, Step

LIVES_MAX = 60
"""Working lives in one run. There are far fewer faults than this: more lives mean that the process cannot get up."""

LIFE_SECONDS_MAX = 7 * 86_400.0
"""Virtual seconds in one life. A life that is longer waits for something that never comes."""

STEP_SECONDS = 1e-6
"""Virtual time a callback takes: enough for time to move, too little to matter."""

End = Literal["done", "orderly", "kill", "power", "broken"]


class Subject(Protocol):
    """What is under test, for one life. It records what is seen from outside with `life.record`."""

    async def start(self) -> None:
        """Come up from what is on the disk."""
        ...

    async def perform(self, step: Step) -> None:
        """Do one step of one actor. Errors that a user may meet are handled and recorded; any other is a finding."""
        ...

    async def finish(self) -> None:
        """In the last life: drain what can be drained, and record what is there."""
        ...

    async def stop(self) -> None:
        """An orderly end. Nothing may be left running."""
        ...


SubjectFactory = Callable[["Life"], Subject]


class Life:
    """What one life of the process has to work with."""

    def __init__(self, world: World, number: int, loop: VirtualLoop, files: SimFiles, runner: SimRunner) -> None:
        self.world = world
        self.number = number
        self.loop = loop
        self.files = files
        self.runner = runner
        self.scenario = world.scenario
        self._entropy = world.rng(f"entropy {number}")

    def clock_us(self) -> int:
        """The wall clock, which may jump."""
        return self.world.clock.wall_us()

    def entropy(self, count: int) -> bytes:
        return self._entropy.randbytes(count)

    def rng(self, purpose: str) -> random.Random:
        """Random choices for one purpose: the same in each run of this seed, whatever other purposes draw."""
        return self.world.rng(f"{purpose} {self.number}")

    def record(self, event: Event) -> None:
        """Note what was seen. A dead life has seen nothing."""
        if not self.loop.dead:
            self.world.record(event)

    def end(self, how: Literal["orderly", "kill", "power"]) -> None:
        """Ask for a new life, as an operator would when the broker says that its disk has failed."""
        self.world.end_life(how)


@dataclass
class Report:
    """How a run went."""

    scenario: Scenario
    violations: list[Violation] = field(default_factory=list)
    history: History = field(default_factory=list)
    lives: int = 0
    steps: int = 0
    operations: int = 0
    virtual_seconds: float = 0.0
    faults_happened: int = 0

    @property
    def failed(self) -> bool:
        return bool(self.violations)

    @property
    def digest(self) -> str:
        """Equal for equal runs: a run is repeatable exactly when this is."""
        text = "\n".join(map(str, self.history)) + f"{self.lives} {self.steps} {self.operations}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class World:
    def __init__(
        self, scenario: Scenario, subject: SubjectFactory, *, trace: Callable[[str], None] | None = None
    ) -> None:
        self.scenario = scenario
        self.clock = VirtualClock()
        self.disk = SimDisk(self.rng("disk"), capacity_bytes=scenario.settings.get("capacity_bytes"))
        self.disk.latency = self._latency
        self.disk.lying_sync = scenario.settings.get("lying_sync", False)
        self.disk.trace = trace
        self.report = Report(scenario)
        self._subject = subject
        self._trace = trace
        self._latencies = self.rng("latency")
        self._slowness = 1.0
        self._waiting: defaultdict[str, deque[Step]] = defaultdict(deque)
        for step in scenario.steps:
            self._waiting[step.actor].append(step)
        self._pending = [fault for fault in scenario.faults if fault.kind not in ON_OPERATION]
        self._recoveries: list[tuple[float, Callable[[], None]]] = []
        self._on_operation = {_disk_fault(fault): fault for fault in scenario.faults if fault.kind in ON_OPERATION}
        self.disk.arm(*self._on_operation)
        self._loop: VirtualLoop | None = None
        self._ending: End = "power"
        self._restart: asyncio.Future[None] | None = None

    def rng(self, purpose: str) -> random.Random:
        return random.Random(f"{self.scenario.seed} {purpose}")

    def record(self, event: Event) -> None:
        entry = Entry(self.clock.now, self.report.lives, event)
        self.report.history.append(entry)
        if self._trace is not None:
            self._trace(str(entry))

    # --- a run ------------------------------------------------------------------------------------------------------

    def run(self) -> Report:
        """Run the scenario to its end and judge it."""
        # Reference counting is deterministic and the collector's timing is not: collected objects may have finalisers.
        collecting = gc.isenabled()
        gc.disable()
        try:
            with warnings.catch_warnings():
                # A crash leaves coroutines that were made and never came to run; that is what a crash is.
                warnings.filterwarnings("ignore", message=".* was never awaited", category=RuntimeWarning)
                self._run_lives()
                self.report.violations += judge(self.report.history)
                self._loop = self._restart = None
                gc.collect()
        finally:
            self.disk.close()
            if collecting:
                gc.enable()
        self.report.operations = self.disk.operations
        self.report.virtual_seconds = self.clock.now
        self.report.faults_happened += len(self.disk.happened)
        return self.report

    def _run_lives(self) -> None:
        end: End = "orderly"
        while end != "done":
            if self.report.lives == LIVES_MAX:
                self._object("keeps_running", f"did not get through its steps in {LIVES_MAX} lives")
                return
            end = self._live(last=False)
            if end == "broken":
                return
        # How the working lives end is up to the seed: everything acknowledged must be there after any end.
        if self.rng("last end").random() < 0.5:
            self.disk.lose_power()
        self.disk.disarm()
        self.disk.capacity_bytes = None
        self._slowness = 1.0
        self._live(last=True)

    def _live(self, *, last: bool) -> End:
        """One life, from start to whatever ends it."""
        number = self.report.lives = self.report.lives + 1
        loop = self._loop = VirtualLoop(
            self.clock,
            rng=self.rng(f"schedule {number}"),
            shuffle=self.scenario.settings.get("shuffle", "timers"),
            step_seconds=STEP_SECONDS,
            time_max=self.clock.now + LIFE_SECONDS_MAX,
        )
        files = self.disk.mount()
        self.disk.on_crash = loop.crash
        starts = self.rng(f"runner {number}")
        runner = SimRunner(loop, self.disk, start_seconds=lambda: starts.expovariate(20_000))
        life = Life(self, number, loop, files, runner)
        self._ending = "power"
        self.record(Started())
        try:
            end = loop.run(self._main(life, last=last))
            if end == "done":
                # A task that failed and that nobody awaited tells of it when it goes; in a cycle it would not go.
                gc.collect()
            left = loop.finish()
            if left and end == "done":
                self._object("nothing_left_running", "; ".join(left))
        except Crashed:
            end = self._how_it_crashed()
        except SimulationStopped as stopped:
            self._object("keeps_running", str(stopped))
            end = "broken"
        except Exception as error:
            loop.abandon()
            self._object("no_unexpected_error", _tell(error))
            end = "broken"
        finally:
            self.report.steps += loop.steps
            for unhandled in loop.unhandled:
                self._object("no_unexpected_error", str(unhandled))
        if end == "power":
            self.disk.lose_power()
        else:
            self.disk.kill()
        if end in ("orderly", "kill", "power"):
            self.record(Stopped(end))
        return end

    async def _main(self, life: Life, *, last: bool) -> End:
        self._restart = life.loop.create_future()
        subject = self._subject(life)
        try:
            await subject.start()
        except Exception as error:
            if last:
                self._object("starts_again", _tell(error))
                return "broken"
            # With faults about, a start may fail; the next one, or at the latest the last, must not.
            life.record(StartFailed(_tell(error)))
            self._await_better_times(life)
            return "kill"
        if last:
            await subject.finish()
        elif await self._work(life, subject) == "orderly":
            await subject.stop()
            return "orderly"
        await subject.stop()
        return "done"

    async def _work(self, life: Life, subject: Subject) -> End:
        for fault in list(self._pending):
            life.loop.call_at(max(fault.at, life.loop.time()), self._happen, fault)
        for at, recover in self._recoveries:
            life.loop.call_at(max(at, life.loop.time()), recover)
        actors = [
            asyncio.create_task(self._act(life, subject, steps), name=f"actor {name}")
            for name, steps in self._waiting.items()
        ]
        assert self._restart is not None
        everyone: asyncio.Future[Any] = asyncio.gather(*actors)
        await asyncio.wait([everyone, self._restart], return_when=asyncio.FIRST_COMPLETED)
        if everyone.done():
            everyone.result()
            return "done"
        for actor in actors:
            actor.cancel()
        await asyncio.gather(everyone, return_exceptions=True)
        await asyncio.gather(*actors, return_exceptions=True)
        return "orderly"

    async def _act(self, life: Life, subject: Subject, steps: deque[Step]) -> None:
        while steps:
            # Taken only when its time has come: a crash while the actor rests leaves the step for the next life.
            if steps[0].after:
                await asyncio.sleep(steps[0].after)
            step = steps.popleft()
            if self._trace is not None:
                self._trace(f"{self.clock.now:12.6f} {step}")
            await subject.perform(step)

    # --- faults -----------------------------------------------------------------------------------------------------

    def end_life(self, how: Literal["orderly", "kill", "power"]) -> None:
        assert self._loop is not None
        assert self._restart is not None
        if how == "orderly":
            if not self._restart.done():
                self._restart.set_result(None)
        else:
            self._ending = how
            self.disk.kill()
            self._loop.crash()

    def _happen(self, fault: Fault) -> None:
        if fault not in self._pending:
            return
        self._pending.remove(fault)
        self.report.faults_happened += 1
        if self._trace is not None:
            self._trace(f"{self.clock.now:12.6f} {fault}")
        match fault.kind:
            case "kill" | "power_loss":
                self.end_life("kill" if fault.kind == "kill" else "power")
            case "restart":
                self.end_life("orderly")
            case "bit_flip":
                flip = self.disk.flip_bit()
                if flip is not None:
                    self.record(Damaged(flip.name, flip.position))
            case "full_disk":
                self.disk.capacity_bytes = self.disk.used_bytes + int(fault.amount)
                self._recover_after(fault.seconds, self._make_room)
            case "slow_disk":
                self._slowness = fault.amount
                self._recover_after(fault.seconds, self._speed_up)
            case "clock_jump":
                self.clock.jump_wall(fault.seconds)
                self.record(ClockJumped(fault.seconds))

    def _recover_after(self, seconds: float, recover: Callable[[], None]) -> None:
        """A crash meanwhile does not change when: what is not yet due is set up again in the next life."""
        assert self._loop is not None
        self._recoveries.append((self.clock.now + seconds, recover))
        self._loop.call_later(seconds, recover)

    def _make_room(self) -> None:
        self.disk.capacity_bytes = self.scenario.settings.get("capacity_bytes")

    def _speed_up(self) -> None:
        self._slowness = 1.0

    def _await_better_times(self, life: Life) -> None:
        """Someone looks after the machine when it does not start: makes room, and waits a while."""
        self._make_room()
        self._speed_up()
        life.loop.block(1.0)

    def _how_it_crashed(self) -> End:
        if self.disk.happened and self.disk.happened[-1] in self._on_operation:
            fault = self._on_operation.pop(self.disk.happened[-1])
            if fault.kind in ("crash_before", "crash_after", "torn_write"):
                return "power" if fault.power else "kill"
        return self._ending

    def _latency(self, kind: str, size: int) -> float:
        """Like a good SSD: a sync takes a tenth of a millisecond or two, and sometimes much longer."""
        mean = 2e-4 if kind in ("sync", "commit", "zero_fill", "sync_directory", "rename") else 1e-5
        seconds = self._latencies.expovariate(1 / mean) + size / 1e9
        return seconds * self._slowness

    def _object(self, name: str, problem: str) -> None:
        self.report.violations.append(Violation(name, problem))


def _disk_fault(fault: Fault) -> DiskFault:
    return DiskFault(cast(DiskFaultKind, fault.kind), int(fault.at))


def _tell(error: BaseException) -> str:
    """The error and where it was raised, without the whole trace: enough to know it again while shrinking."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {frames[-1].filename}:{frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}: {error}{place}"


def run(scenario: Scenario, subject: SubjectFactory, *, trace: Callable[[str], None] | None = None) -> Report:
    """Run one scenario in a world of its own."""
    return World(scenario, subject, trace=trace).run()
