"""A query as a subscription on the node: its lag is shown there, and what it has not read yet is kept for it."""

from __future__ import annotations

from functools import partial

from sealane.client.sync import SyncLane
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.spark.options.access import lane_of, with_retries
from sealane.spark.options.options import ReadOptions
from sealane.spark.source.planning.offsets import Positions, TopicPositions

log = get_log("sealane.spark")


class Registered:
    """Without the option `subscription` it does nothing."""

    def __init__(self, options: ReadOptions) -> None:
        self._access = options.access
        self._subscription = options.subscription
        self._told: dict[str, TopicPositions] = {}
        """How far the node knows that the query is."""

    def begin(self, positions: Positions) -> None:
        """Register where a new query begins, before it has read anything. Raises what the node refuses."""
        subscription = self._subscription
        if subscription is None:
            return
        for topic, at in positions.items():
            if self._told.get(topic) == at:
                continue
            what = f"subscribing {subscription!r} to topic {topic}"
            with_retries(self._access, what, partial(_advance, topic, subscription, at))
            self._told[topic] = at

    def advance(self, positions: Positions) -> None:
        """Say that everything below is done. The checkpoint is the truth and this a hint: a failure is logged, and what
        is said next makes up for it.
        """
        if self._subscription is None:
            return
        for topic, at in positions.items():
            if self._told.get(topic) == at:
                continue
            try:
                _advance(topic, self._subscription, at, lane_of(self._access))
            except SealaneError as error:
                log.warning(
                    "a query's position could not be told to the node",
                    topic=topic,
                    subscription=self._subscription,
                    problem=str(error),
                )
            else:
                self._told[topic] = at


def _advance(topic: str, subscription: str, at: TopicPositions, lane: SyncLane) -> None:
    lane.advance(topic, subscription, at.offsets)
