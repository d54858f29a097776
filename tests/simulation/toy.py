"""A toy queue, durable in the simplest way: what the simulator itself is tested with.

One topic, one partition, one subscription; every publish and every ack is a checksummed line of one file, synced before
it is confirmed. A damaged line is skipped, and declared. Its planted bugs are the classic ones, and each must be found.
"""

from __future__ import annotations

import asyncio
import random
import zlib

from tests.simulation.faults import CRASHES, FaultKind, draw_faults
from tests.simulation.history import (
    AckCalled,
    AckConfirmed,
    DeclaredLost,
    Drained,
    Granted,
    Logged,
    LogRead,
    Message,
    Place,
    PublishAcked,
    PublishCalled,
    PublishRefused,
    Subscribed,
)
from tests.simulation.scenario import Scenario, Step
from tests.simulation.world import Life

FILE = "toy.log"


def draw_toy(seed: int) -> Scenario:
    """Two producers and a consumer for some seconds, and up to three faults."""
    rng = random.Random(f"{seed} toy")
    steps = []
    for number in range(rng.randint(5, 40)):
        actor = rng.choice(("producer-1", "producer-2", "consumer"))
        if actor == "consumer":
            steps.append(Step(actor, "consume", {"count": rng.randint(1, 5)}, after=round(rng.random(), 3)))
        else:
            size = rng.choice((1, 1, 300, 3000))
            steps.append(Step(actor, "publish", {"label": f"m{number}", "bytes": size}, after=round(rng.random(), 3)))
    mix: dict[FaultKind, float] = {**CRASHES, "sync_error": 1, "bit_flip": 2}
    faults = draw_faults(rng, mix, count_max=3, seconds=8, operations=60)
    return Scenario("toy", seed, tuple(steps), faults)


class ToyQueue:
    """One life of the toy. `bug` in the scenario's settings switches a planted bug on."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._bug = life.scenario.settings.get("bug")
        self._messages: dict[int, tuple[str, bool]] = {}
        """Offset → label, and whether the payload is what it should be."""
        self._next = 0
        self._settled: set[int] = set()
        self._leased: set[int] = set()
        self._end = 0
        self._writing = asyncio.Lock()

    async def start(self) -> None:
        files = self._life.files
        self._file = files.open(FILE, create=True)
        files.sync_directory("")
        # What follows the last line break was never finished.
        lines = self._file.read_at(0, self._file.size).split(b"\n")[:-1]
        sound = [_open(line) for line in lines]
        while sound and sound[-1] is None:
            # Nothing sound behind it: a torn write.
            sound.pop()
        for line, body in zip(lines, sound, strict=False):
            self._end += len(line) + 1
            if body is not None:
                self._fold(body)
            elif self._bug == "serves corrupted records":
                self._fold(line[9:])
        self._file.truncate(self._end)
        self._file.sync()
        if None in sound:
            # It was a message, then its offset is missing; or an ack, and no one can tell of which message.
            self._life.record(DeclaredLost("toy", 0, 0, 1, journal=True))
            for offset in set(range(self._next)) - set(self._messages):
                self._life.record(DeclaredLost("toy", 0, offset, offset + 1))

    def _fold(self, body: bytes) -> None:
        kind, number, label, payload = [*body.split(b" "), b"", b"", b""][:4]
        try:
            offset = int(number)
        except ValueError:
            return
        if kind == b"+":
            self._messages[offset] = (label.decode(errors="replace"), not payload.strip(b"x"))
            self._next = max(self._next, offset + 1)
        elif self._bug != "forgets acks":
            self._settled.add(offset)

    async def perform(self, step: Step) -> None:
        try:
            if step.verb == "publish":
                await self._publish(step.actor, step.args["label"], step.args["bytes"])
            else:
                await self._consume(step.actor, step.args["count"])
        except OSError:
            # Fail-stop: after a failed sync only a new start tells what is on the disk.
            self._life.end("power")

    async def _publish(self, producer: str, label: str, size: int) -> None:
        record = self._life.record
        record(PublishCalled(producer, "toy", (Message(label),)))
        if self._life.files.free_bytes() < size:
            record(PublishRefused((label,), "full"))
            return
        if self._bug == "acks before commit":
            record(PublishAcked(producer, (label,), (Place("toy", 0, self._next),)))
        async with self._writing:
            place = Place("toy", 0, self._next)
            await self._append(b"+ %d %s %s" % (place.offset, label.encode(), b"x" * size))
            self._messages[place.offset] = (label, True)
            self._next += 1
        if self._bug != "acks before commit":
            record(PublishAcked(producer, (label,), (place,)))

    async def _consume(self, session: str, count: int) -> None:
        ready = [offset for offset in sorted(self._messages) if offset not in self._settled | self._leased]
        for offset in ready[:count]:
            place = Place("toy", 0, offset)
            label, intact = self._messages[offset]
            self._leased.add(offset)
            self._life.record(Granted("s", session, place, label, intact=intact))
            self._life.record(AckCalled("s", session, (place,)))
            async with self._writing:
                await self._append(b"- %d" % (offset + (self._bug == "off by one")))
                self._settled.add(offset)
            self._life.record(AckConfirmed("s", session, (place,)))

    async def _append(self, body: bytes) -> None:
        line = b"%08x %s\n" % (zlib.crc32(body), body)
        position, self._end = self._end, self._end + len(line)

        def write() -> None:
            self._file.write_at(position, [line])
            if self._bug != "skips the sync":
                self._file.sync()

        await self._life.runner.run(write)

    async def finish(self) -> None:
        record = self._life.record
        record(Subscribed("toy", "s"))
        await self._consume("last", len(self._messages))
        record(Drained("toy", "s"))
        for offset, (label, intact) in self._messages.items():
            record(Logged(Place("toy", 0, offset), label, intact))
        record(LogRead("toy", 0, 0, self._next))

    async def stop(self) -> None:
        self._file.close()


def _open(line: bytes) -> bytes | None:
    """The body of a line whose checksum is right."""
    try:
        return line[9:] if int(line[:8], 16) == zlib.crc32(line[9:]) and line[8:9] == b" " else None
    except ValueError:
        return None
