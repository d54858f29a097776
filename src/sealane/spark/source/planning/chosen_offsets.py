"""Where a read begins and ends, from what the options say and what there is in the logs."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from sealane.message.names import split_topic
from sealane.node.logs import PartitionLog, TopicLog
from sealane.spark.errors import InvalidOption
from sealane.spark.options.texts import OffsetsByTopic
from sealane.spark.source.planning.offsets import Positions, TopicPositions

Chosen = Literal["earliest", "latest"] | datetime | OffsetsByTopic


def beginning(chosen: Chosen, logs: Sequence[TopicLog]) -> Positions:
    """Where to begin. For a moment, `logs` were asked with it; partitions without an offset begin where their log does.

    An offset below the log's start is left as it is: it tells what is gone. Raises `InvalidOption` for one beyond its
    end, and for a topic or partition that is not there.
    """
    return _positions("startingOffsets", chosen, logs, "earliest")


def is_lasting(chosen: Chosen, logs: Sequence[TopicLog]) -> bool:
    """Whether the same beginning would be found later, when the logs have grown: the end of one would not."""
    if isinstance(chosen, datetime):
        return all(_offset(chosen, at) < at.end for log in logs for at in log.partitions)
    return chosen != "latest"


def ending(chosen: Chosen, logs: Sequence[TopicLog], begin: Positions) -> Positions:
    """Where to end, likewise; what is not named ends where its log does. Raises `InvalidOption` if that is before the
    beginning.
    """
    end = _positions("endingOffsets", chosen, logs, "latest")
    for topic, at in end.items():
        for partition, stop in at.offsets.items():
            start = begin[topic].offsets[partition] if topic in begin else stop
            if stop < start:
                option = "endingTimestamp" if isinstance(chosen, datetime) else "endingOffsets"
                raise InvalidOption(option, f"{topic} partition {partition} would end at {stop}, and begins at {start}")
    return end


def _positions(
    option: str, chosen: Chosen, logs: Sequence[TopicLog], otherwise: Literal["earliest", "latest"]
) -> Positions:
    if isinstance(chosen, dict):
        named = _named(option, chosen, logs)
        return {
            log.name: TopicPositions(
                log.incarnation,
                {at.partition: named[log.name].get(at.partition, _offset(otherwise, at)) for at in log.partitions},
            )
            for log in logs
        }
    return {
        log.name: TopicPositions(log.incarnation, {at.partition: _offset(chosen, at) for at in log.partitions})
        for log in logs
    }


def _offset(chosen: Literal["earliest", "latest"] | datetime, log: PartitionLog) -> int:
    if isinstance(chosen, datetime):
        assert log.at is not None, "logs were not asked for the moment"
        return log.at
    return log.start if chosen == "earliest" else log.end


def _named(option: str, given: OffsetsByTopic, logs: Sequence[TopicLog]) -> dict[str, dict[int, int]]:
    """By full name; of each topic that is read, if only with nothing."""
    found: dict[str, dict[int, int]] = {log.name: {} for log in logs}
    for name, offsets in given.items():
        log = _log_called(option, name, logs)
        ends = {at.partition: at.end for at in log.partitions}
        for partition, offset in offsets.items():
            if partition not in ends:
                raise InvalidOption(option, f"{name!r} has no partition {partition}; it has 0 to {len(ends) - 1}")
            if offset > ends[partition]:
                problem = f"{offset} is beyond the end of {name!r} partition {partition}, which is {ends[partition]}"
                raise InvalidOption(option, problem)
        found[log.name].update(offsets)
    return found


def _log_called(option: str, name: str, logs: Sequence[TopicLog]) -> TopicLog:
    """A bare name is the only topic of that name among those that are read, in whatever domain it is."""
    called = [log for log in logs if name in (log.name, split_topic(log.name)[1])]
    if len(called) == 1:
        return called[0]
    read = ", ".join(log.name for log in called or logs) or "none"
    if called:
        raise InvalidOption(option, f"{name!r} could be any of {read}; name its domain")
    raise InvalidOption(option, f"{name!r} is not among the topics that are read, which are {read}")
