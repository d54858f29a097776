"""How much of what there is goes into one micro-batch."""

from __future__ import annotations

from sealane.spark.source.planning.offsets import Positions, TopicPositions

Place = tuple[str, int]
"""A topic and a partition."""


def admit(start: Positions, end: Positions, messages_max: int) -> Positions:
    """Positions between the two that take in `messages_max` messages, or all if there are fewer.

    Partitions share them in proportion to what waits there, so that all are done at about the same time; each that has
    something gets at least one, so that a short queue does not starve beside long ones, as far as there are enough. The
    same for the same positions: a restarted query plans what it planned before.
    """
    waiting = {
        (topic, partition): stop - start[topic].offsets[partition]
        for topic, at in sorted(end.items())
        for partition, stop in sorted(at.offsets.items())
        if topic in start and stop > start[topic].offsets.get(partition, stop)
    }
    if sum(waiting.values()) <= messages_max:
        return end
    shares = _shares(waiting, messages_max)
    return {
        topic: TopicPositions(
            at.incarnation,
            {
                partition: start[topic].offsets[partition] + shares[topic, partition]
                if (topic, partition) in shares
                else stop
                for partition, stop in at.offsets.items()
            },
        )
        for topic, at in end.items()
    }


def _shares(waiting: dict[Place, int], messages_max: int) -> dict[Place, int]:
    """How many messages each place may give; more wait than there are shares."""
    if messages_max <= len(waiting):
        longest = sorted(waiting, key=lambda place: (-waiting[place], place))[:messages_max]
        return {place: int(place in longest) for place in waiting}
    left = messages_max - len(waiting)
    rest = sum(waiting.values()) - len(waiting)
    shares = {place: 1 + left * (count - 1) // rest for place, count in waiting.items()}
    # What rounding down has left over goes to those that lost most by it.
    by_loss = sorted(waiting, key=lambda place: (-(left * (waiting[place] - 1) % rest), place))
    for place in by_loss[: messages_max - sum(shares.values())]:
        shares[place] += 1
    return shares
