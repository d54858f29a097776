"""Staged parts: batches that are kept in a log of their own until they are published together. A fold of its journal.

A *part* is what one writer has staged, batch by batch. A *decision* is a publish of parts that has begun, has taken
effect for its first messages, and will for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import msgspec

from sealane.delivery.events import BatchStaged, PartsEnded, PublishAdvanced, PublishDecided, StagingEvent
from sealane.delivery.id_window import IdWindow

PART_BYTES = 16
"""The length of a part's name: as random as an id."""
ENDED_PARTS_MAX = 100_000
"""How many parts that are over a log remembers: what comes late for one of them is refused, not kept as a new one."""


class StagedBatch(msgspec.Struct, frozen=True, array_like=True):
    """Where a batch is kept, and what for."""

    number: int
    topic: str
    base: int
    count: int
    nbytes: int
    given_ids: bool

    @property
    def stop(self) -> int:
        return self.base + self.count


@dataclass(slots=True)
class Part:
    """Of one log: the batches of a part that spans domains are in several."""

    staged_us: int
    """When the last batch came."""
    batches: list[StagedBatch] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Decision:
    transaction: str
    epoch: int | None
    parts: tuple[bytes, ...]
    topics: dict[str, int]
    messages: int
    """How many are published."""

    @property
    def name(self) -> DecisionName:
        return self.transaction, self.epoch


DecisionName = tuple[str, int | None]
"""A transaction, or a writer and its epoch."""


class StagedState(msgspec.Struct, array_like=True):
    """As a snapshot has it."""

    parts: list[tuple[bytes, int, list[StagedBatch]]]
    decisions: list[tuple[str, int | None, list[bytes], dict[str, int], int]]
    ended: list[tuple[int, bytes, list[int]]]


class StagedParts:
    """What a partition has staged. Other partitions than those of the system's staging topics have nothing here."""

    __slots__ = ("_decided", "_ended", "bytes", "decisions", "messages", "parts")

    def __init__(self, ended_window_us: int) -> None:
        self.parts: dict[bytes, Part] = {}
        self.decisions: dict[DecisionName, Decision] = {}
        self.messages = 0
        self.bytes = 0
        self._decided: set[bytes] = set()
        self._ended = IdWindow(ended_window_us, ENDED_PARTS_MAX)

    def apply(self, event: StagingEvent) -> None:
        match event:
            case BatchStaged():
                self._staged(event)
            case PartsEnded(parts=parts, time_us=time_us):
                self._end(parts, time_us)
            case PublishDecided(transaction, epoch, parts, topics, messages):
                self._decide(Decision(transaction, epoch, tuple(parts), topics, messages))
            case PublishAdvanced(transaction=transaction, epoch=epoch, messages=messages):
                decision = self.decisions.get((transaction, epoch))
                if decision is not None:
                    self.decisions[decision.name] = replace(decision, messages=messages)

    def _staged(self, event: BatchStaged) -> None:
        part = self.parts.get(event.part)
        if part is None:
            part = self.parts[event.part] = Part(event.time_us)
        part.staged_us = max(part.staged_us, event.time_us)
        part.batches.append(
            StagedBatch(event.number, event.topic, event.base, event.count, event.nbytes, event.given_ids)
        )
        self.messages += event.count
        self.bytes += event.nbytes

    def _end(self, parts: Sequence[bytes], time_us: int) -> None:
        for name in parts:
            part = self.parts.pop(name, None)
            if part is not None:
                self.messages -= sum(batch.count for batch in part.batches)
                self.bytes -= sum(batch.nbytes for batch in part.batches)
        self._ended.add(list(parts), 0, time_us)
        if not self._decided.isdisjoint(parts):
            self.decisions = {
                name: decision
                for name, decision in self.decisions.items()
                if any(part in self.parts for part in decision.parts)
            }
            self._decided = {part for decision in self.decisions.values() for part in decision.parts}

    def _decide(self, decision: Decision) -> None:
        self.decisions[decision.name] = decision
        self._decided.update(decision.parts)

    def is_decided(self, part: bytes) -> bool:
        """Whether the part is being published: it can neither grow nor be dropped."""
        return part in self._decided

    def has_ended(self, part: bytes) -> bool:
        """Whether the part is over, as far back as that is remembered."""
        return self._ended.find(part) is not None

    def batches(self, parts: Sequence[bytes]) -> list[StagedBatch]:
        """What the parts hold here, in the order in which it is published."""
        found = (self.parts.get(name) for name in parts)
        return [batch for part in found if part is not None for batch in part.batches]

    def older_than(self, time_us: int) -> list[bytes]:
        """The parts that nobody has added to since then, but for those that are being published."""
        return [name for name, part in self.parts.items() if part.staged_us < time_us and not self.is_decided(name)]

    def floor(self, end: int) -> int:
        """Below this nothing is waited for; `end` if nothing is at all."""
        return min((batch.base for batch in self._unpublished()), default=end)

    def _unpublished(self) -> Iterator[StagedBatch]:
        for name, part in self.parts.items():
            if not self.is_decided(name):
                yield from part.batches
        for decision in self.decisions.values():
            done = decision.messages
            for batch in self.batches(decision.parts):
                if done < batch.count:
                    yield batch
                done -= min(done, batch.count)

    def dump(self) -> StagedState | None:
        """None if there is nothing to tell, as of nearly every partition."""
        if not self.parts and not self.decisions and not len(self._ended):
            return None
        return StagedState(
            [(name, part.staged_us, part.batches) for name, part in self.parts.items()],
            [
                (each.transaction, each.epoch, list(each.parts), each.topics, each.messages)
                for each in self.decisions.values()
            ],
            self._ended.dump(),
        )

    def load(self, state: StagedState | None) -> None:
        """Become what the snapshot says, whatever was here before."""
        state = state or StagedState([], [], [])
        self.parts = {name: Part(staged_us, batches) for name, staged_us, batches in state.parts}
        batches = [batch for part in self.parts.values() for batch in part.batches]
        self.messages = sum(batch.count for batch in batches)
        self.bytes = sum(batch.nbytes for batch in batches)
        self.decisions, self._decided = {}, set()
        for transaction, epoch, parts, topics, messages in state.decisions:
            self._decide(Decision(transaction, epoch, tuple(parts), topics, messages))
        self._ended.load(state.ended)
