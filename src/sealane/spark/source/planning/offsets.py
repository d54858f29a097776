"""Positions: how far a reader has come in each partition of its topics, as a checkpoint keeps them.

A position is the offset of the next message to read, so what lies between two of them is half-open. What is in the
later of two `Positions` and not in the earlier one begins where the later one says: a partition or topic that was found
meanwhile comes in there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from sealane.errors import TopicNotFound
from sealane.node.logs import TopicLog
from sealane.spark.errors import InvalidCheckpoint, LogCutShort, Loss, TopicRecreated

INCARNATION = "incarnation"


class TopicPositions(msgspec.Struct, frozen=True):
    """Of one topic, as long as it is the same topic."""

    incarnation: int
    offsets: dict[int, int]
    """By partition."""


Positions = Mapping[str, TopicPositions]
"""By the topics' full names."""
OffsetJson = dict[str, dict[str, int]]
"""What Spark writes to a checkpoint: `{"default/orders": {"incarnation": 123, "0": 17, "1": 20}}`."""


def to_json(positions: Positions) -> OffsetJson:
    """In the one order there is, since Spark compares offsets as texts."""
    return {
        topic: {INCARNATION: at.incarnation, **{str(number): at.offsets[number] for number in sorted(at.offsets)}}
        for topic, at in sorted(positions.items())
    }


def from_json(offset: object) -> Positions:
    """What `to_json` has made. Raises `InvalidCheckpoint` for anything else."""
    try:
        topics = msgspec.convert(offset, dict[str, dict[str, int]])
        return {
            topic: TopicPositions(fields.pop(INCARNATION), {_number(name): at for name, at in fields.items()})
            for topic, fields in topics.items()
        }
    except (msgspec.ValidationError, KeyError, ValueError):
        shown = msgspec.json.encode(offset).decode()[:200]
        raise InvalidCheckpoint(f'{shown} is not of the form {{"topic": {{"incarnation": 1, "0": 17}}}}') from None


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(text)
    return int(text)


def ends_of(logs: Sequence[TopicLog]) -> Positions:
    """Behind the last messages that are durable."""
    return {log.name: TopicPositions(log.incarnation, {at.partition: at.end for at in log.partitions}) for log in logs}


def check_topics(positions: Positions, logs: Sequence[TopicLog]) -> None:
    """Raise `TopicRecreated` or `LogCutShort` if positions do not mean in these logs what they meant when they were
    written: then there is nothing that reading on from them could be right about.
    """
    for log in logs:
        known = positions.get(log.name)
        if known is None:
            continue
        if known.incarnation != log.incarnation:
            raise TopicRecreated(log.name, known.incarnation, log.incarnation)
        ends = {at.partition: at.end for at in log.partitions}
        for partition, position in sorted(known.offsets.items()):
            if position > ends.get(partition, 0):
                raise LogCutShort(log.name, partition, position, ends.get(partition, 0))


def gone(positions: Positions, logs: Sequence[TopicLog]) -> TopicNotFound | None:
    """What to say of topics with a position that a pattern does not find any more, if there are."""
    missing = sorted(set(positions) - {log.name for log in logs})
    if not missing:
        return None
    hint = "the query has read of it, and it was deleted since, or may not be consumed any more; to go on without it, "
    return TopicNotFound(", ".join(missing), hint + "set the option failOnDataLoss=false")


def losses(positions: Positions, logs: Sequence[TopicLog]) -> list[Loss]:
    """What is gone between these positions and the messages that are still there."""
    return [
        Loss(log.name, at.partition, positions[log.name].offsets[at.partition], at.start)
        for log in logs
        if log.name in positions
        for at in log.partitions
        if positions[log.name].offsets.get(at.partition, at.start) < at.start
    ]


def moved_on(positions: Positions, logs: Sequence[TopicLog]) -> Positions:
    """The same positions, but behind what is gone."""
    moved = dict(positions)
    for loss in losses(positions, logs):
        at = moved[loss.topic]
        moved[loss.topic] = TopicPositions(at.incarnation, {**at.offsets, loss.partition: loss.stop})
    return moved


def reachable(positions: Positions, logs: Sequence[TopicLog], target: Positions | None = None) -> Positions:
    """How far one could read from these positions, and no further than the target, if there is one.

    A partition that is new comes in at its first message ever, a topic that is new at the first that it still has: with
    the next positions, so that where they begin is in the checkpoint before anything of them is read. A topic that is
    gone stays where it is.
    """
    found = dict(positions)
    for log in logs:
        ends = _ends(log, target)
        known = positions.get(log.name)
        if known is not None:
            reached = {number: max(known.offsets.get(number, 0), end) for number, end in ends.items()}
            came_in = {number: 0 for number in ends if number not in known.offsets}
            found[log.name] = TopicPositions(log.incarnation, {**known.offsets, **reached, **came_in})
        elif ends:
            starts = {at.partition: at.start for at in log.partitions if at.partition in ends}
            found[log.name] = TopicPositions(log.incarnation, starts)
    return found


def _ends(log: TopicLog, target: Positions | None) -> dict[int, int]:
    """Of the partitions that may be read at all."""
    ends = {at.partition: at.end for at in log.partitions}
    if target is None:
        return ends
    wanted = target[log.name].offsets if log.name in target else {}
    return {number: min(end, wanted[number]) for number, end in ends.items() if number in wanted}


def count(start: Positions, end: Positions) -> int:
    """Messages between them."""
    return sum(
        max(0, stop - start[topic].offsets.get(number, stop))
        for topic, at in end.items()
        if topic in start
        for number, stop in at.offsets.items()
    )
