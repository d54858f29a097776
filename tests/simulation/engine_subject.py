"""The local engine alone: appends to some partitions, alone and together, and whether they are there in the end."""

from __future__ import annotations

import asyncio
import random

from sealane.engine import Append, Opened, PartitionKey
from sealane.engine.local import LocalEngine, StorageSettings
from sealane.engine.local.compactor_process import InlineCompactor
from sealane.errors import OffsetMismatch, StorageError, StorageFailed, StorageFull
from sealane.message import Batch, Limits, Stamp, from_payloads
from tests.simulation.faults import EVERYTHING, draw_faults
from tests.simulation.history import (
    DeclaredLost,
    Logged,
    LogRead,
    Message,
    Place,
    PublishAcked,
    PublishCalled,
    PublishRefused,
    TransactionCalled,
    TransactionCommitted,
)
from tests.simulation.labels import payload_of, read_payload
from tests.simulation.scenario import Scenario, Step
from tests.simulation.world import Life

PARTITIONS = 3
READ_BYTES_MAX = 1 << 20
RESEALED_SECONDS_MAX = 3_600.0
"""Of virtual time: a try that failed is followed by the next after half a minute."""


def draw_engine(seed: int) -> Scenario:
    """A few writers append batches and journal entries of all sizes, to one partition or to two at once."""
    rng = random.Random(f"{seed} engine")
    steps = []
    for number in range(rng.randint(10, 80)):
        actor = f"writer-{rng.randrange(4)}"
        rest = rng.choice((0.0, 0.0, 0.001, 0.1))
        partitions = rng.sample(range(PARTITIONS), rng.choice((1, 1, 1, 2)))
        size = rng.choice((0, 10, 100, 1_000, 10_000))
        args = {"labels": [f"m{number}.{n}" for n in partitions], "partitions": partitions, "bytes": size}
        steps.append(Step(actor, "append", {**args, "journal": rng.random() < 0.5}, after=rest))
    _draw_rotations(random.Random(f"{seed} rotations"), steps)
    faults = draw_faults(rng, EVERYTHING, count_max=4, seconds=1.0, operations=150)
    settings = {
        "segment_bytes": rng.choice((4_096, 16_384, 65_536)),
        "commit": rng.choice(("auto", "inline", "thread")),
        "compaction": rng.random() < 0.5,
        "after_failure": rng.choice(("kill", "power")),
    }
    return Scenario("engine", seed, tuple(steps), faults, settings)


def _draw_rotations(rng: random.Random, steps: list[Step]) -> None:
    """In every other run someone exchanges the domain's key now and then, or the master key."""
    for _ in range(rng.choice((0, 0, 1, 3))):
        rest = rng.choice((0.0, 0.001, 0.1))
        step = Step("operator", "rotate", {"master": rng.random() < 0.3}, after=rest)
        steps.insert(rng.randrange(len(steps) + 1), step)


def partition_key(number: int) -> PartitionKey:
    return PartitionKey("default", "t", 1, number)


class EngineSubject:
    """One life of a local engine. Journal entries are recorded as messages of the topic `journal`."""

    engine: LocalEngine

    def __init__(self, life: Life) -> None:
        self._life = life
        self._opened: dict[int, Opened] = {}
        self._ends: dict[int, list[int]] = {}
        self._openings = 0
        self._open = asyncio.Event()

    async def start(self) -> None:
        life, given = self._life, self._life.scenario.settings
        settings = StorageSettings(
            segment_bytes=given["segment_bytes"],
            segment_bytes_first=4_096,
            commit=given["commit"],
            compaction=given["compaction"],
            compaction_segments_min=2,
            compaction_segments_max=2,
            tail_bytes_max=20_000,
            disk_free_bytes_min=0,
        )
        self.engine = await LocalEngine.start(
            life.files,
            settings=settings,
            clock=life.clock_us,
            entropy=life.entropy,
            runner=life.runner,
            compactor=lambda files, sealer: InlineCompactor(files, sealer, life.entropy),
        )
        await self._open_all()

    async def perform(self, step: Step) -> None:
        await (self._rotate(step) if step.verb == "rotate" else self._append(step))

    async def _rotate(self, step: Step) -> None:
        """A rotation that fails leaves everything readable; what is sealed anew afterwards has `finish` to wait for."""
        await self._open.wait()
        try:
            if step.args["master"]:
                await self.engine.keys.rotate_master()
            else:
                await self.engine.keys.rotate("default")
        except StorageError:
            return

    async def _append(self, step: Step) -> None:
        """Append one message to each of the partitions, in one commit, with or without a journal entry each."""
        args, life = step.args, self._life
        await self._open.wait()
        openings = self._openings
        labels: list[str] = args["labels"]
        messages = tuple(Message(label) for label in labels)
        together = len(labels) > 1
        if together:
            life.record(TransactionCalled(labels[0], messages))
        appends, places, journal_places = [], [], []
        for number, label in zip(args["partitions"], labels, strict=True):
            end, journal_end = self._ends[number]
            journal = payload_of(f"{label}.journal", args["bytes"]) if args["journal"] else None
            appends.append(
                Append(
                    partition_key(number),
                    self._opened[number].epoch,
                    self._batch(label, args["bytes"]),
                    end,
                    journal,
                    journal_end,
                )
            )
            places.append(Place("t", number, end))
            journal_places.append(Place("journal", number, journal_end))
        journal_labels = tuple(f"{label}.journal" for label in labels) if args["journal"] else ()
        life.record(PublishCalled(step.actor, "t", messages))
        life.record(PublishCalled(step.actor, "journal", tuple(map(Message, journal_labels))))
        try:
            landing = self.engine.commit(appends)
        except StorageError as error:
            life.record(PublishRefused((*labels, *journal_labels), str(error)))
            if not isinstance(error, StorageFull):
                # Full is known before anything was counted on. A wrong offset means that earlier appends came to
                # nothing and that their callers are yet to be told.
                await self._recover_from(error, openings)
            return
        for number in args["partitions"]:
            self._ends[number][0] += 1
            self._ends[number][1] += args["journal"]
        try:
            await landing
        except StorageError as error:
            await self._recover_from(error, openings)
            return
        life.record(PublishAcked(step.actor, tuple(labels), tuple(places)))
        if journal_labels:
            life.record(PublishAcked(step.actor, journal_labels, tuple(journal_places)))
        if together:
            life.record(TransactionCommitted(labels[0]))

    async def _recover_from(self, error: StorageError, openings: int) -> None:
        """Do what a node would: restart after a failure, and open the partitions again when an outcome is unknown."""
        if isinstance(error, StorageFailed):
            self._life.end(self._life.scenario.settings["after_failure"])
        elif not isinstance(error, StorageFull | OffsetMismatch):
            raise error
        elif openings == self._openings:
            await self._open_all()

    async def _open_all(self) -> None:
        self._openings += 1
        self._open.clear()
        for number in range(PARTITIONS):
            opened = self._opened[number] = await self.engine.open(partition_key(number))
            self._ends[number] = [opened.end, opened.journal_end]
        self._open.set()

    def _batch(self, label: str, size: int) -> Batch:
        stamp = Stamp(self._life.clock_us(), self._life.entropy(16))
        return from_payloads([payload_of(label, size)], stamp, limits=Limits())

    async def finish(self) -> None:
        record = self._life.record
        await self._resealed()
        for number in range(PARTITIONS):
            key = partition_key(number)
            offset = self._opened[number].start
            while stored := await self.engine.read(key, offset, bytes_max=READ_BYTES_MAX):
                for item in stored:
                    for place, payload in enumerate(item.batch.payloads(), start=item.base):
                        if place >= offset:
                            # The first batch may start earlier: compaction joins batches, even between two reads.
                            record(Logged(Place("t", number, place), *read_payload(payload)))
                offset = stored[-1].stop
            for entry_number, data in await self.engine.read_journal(key, self._opened[number].journal_start):
                record(Logged(Place("journal", number, entry_number), *read_payload(data)))
            # Asked for again: reading may have found more damage.
            opened = await self.engine.open(key)
            for topic, spans in (("t", opened.lost), ("journal", opened.journal_lost)):
                for span in spans:
                    record(DeclaredLost(topic, number, span.start, span.stop))
            record(LogRead("t", number, opened.start, opened.end))
            record(LogRead("journal", number, opened.journal_start, opened.journal_end))

    async def _resealed(self) -> None:
        """Nothing is left that an older key has sealed, and no such key: what is read afterwards has no need of it."""
        async with asyncio.timeout(RESEALED_SECONDS_MAX):
            await self.engine.keys.resealed()

    async def stop(self) -> None:
        await self.engine.close()
