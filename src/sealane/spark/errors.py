"""What can go wrong between Spark and a node, beside what Sealane's own errors say already."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from sealane.errors import SealaneError, Unavailable

LOSSES_SHOWN = 5
"""How many places a message names; the error's `losses` has them all."""


class InvalidOption(SealaneError):
    """An option of the source or the sink cannot be what it is; no job has started.

    `option` is its name, `problem` says what was given, what is wrong with it and what is allowed.
    """

    def __init__(self, option: str, problem: str) -> None:
        self.option = option
        self.problem = problem
        super().__init__(f"option {option!r}: {problem}")


class NodeUnreachable(Unavailable):
    """The node did not answer for as long as the option `retrySeconds` allows; a restarted query goes on from its
    checkpoint. `node` says where it should be, `what` was being done: with topic, partition and offset, if there were.
    """

    def __init__(self, node: str, what: str, seconds: float, problem: str) -> None:
        self.node = node
        self.what = what
        self.seconds = seconds
        self.problem = problem
        super().__init__(
            f"{what}: the node at {node} could not be reached for {seconds:g} s ({problem}); start the query again "
            "when it is back, or let it wait longer by the option 'retrySeconds'"
        )


class Loss(msgspec.Struct, frozen=True, order=True):
    """Messages of one partition that are gone: the offsets from `start` up to, and without, `stop`."""

    topic: str
    partition: int
    start: int
    stop: int

    def __str__(self) -> str:
        return f"{self.topic} partition {self.partition} offsets [{self.start}, {self.stop})"


class DataLoss(SealaneError):
    """Messages that were to be read are gone, by retention or by damage; `losses` says which.

    With the option `failOnDataLoss=false` there is a warning instead, and reading goes on behind them.
    """

    def __init__(self, losses: Sequence[Loss]) -> None:
        self.losses = tuple(losses)
        super().__init__(
            f"messages are gone that were not read yet: {shown_losses(losses)}; to go on without them, set the option "
            "failOnDataLoss=false; to have them kept, raise the topic's retention or give the query a subscription"
        )


class TopicRecreated(SealaneError):
    """The topic was deleted and made again since the query began: its offsets mean other messages now."""

    def __init__(self, topic: str, expected: int, found: int) -> None:
        self.topic = topic
        self.expected = expected
        self.found = found
        super().__init__(
            f"topic {topic!r} was deleted and made again (it was incarnation {expected}, it is {found}), so that the "
            "offsets of the checkpoint mean other messages; to read the new one, start the query with a new "
            "checkpointLocation"
        )


class LogCutShort(SealaneError):
    """A log ends before what the query has read: the node was put back to an earlier state, from a backup perhaps."""

    def __init__(self, topic: str, partition: int, position: int, end: int) -> None:
        self.topic = topic
        self.partition = partition
        self.position = position
        self.end = end
        super().__init__(
            f"topic {topic!r} partition {partition} ends at offset {end}, but the query has read up to {position}: the "
            "node was put back to an earlier state, and these offsets will be other messages; start the query with a "
            "new checkpointLocation, and startingOffsets or startingTimestamp where it shall go on"
        )


class InvalidCheckpoint(SealaneError):
    """The offsets in a checkpoint are not ones of this source, or of a newer version of it."""

    def __init__(self, problem: str) -> None:
        self.problem = problem
        super().__init__(
            f"the checkpoint's offsets cannot be read: {problem}; start the query with a new checkpointLocation, or "
            "with the version of Sealane that wrote it"
        )


def shown_losses(losses: Sequence[Loss]) -> str:
    """The first few, for people."""
    more = len(losses) - LOSSES_SHOWN
    return ", ".join(map(str, losses[:LOSSES_SHOWN])) + (f" and {more:,} more" if more > 0 else "")
