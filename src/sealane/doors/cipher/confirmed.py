"""Acks that were confirmed a moment ago: whoever has not heard of it, and asks again, is told again."""

from __future__ import annotations

from collections import OrderedDict

CONFIRMED_REMEMBERED_MAX = 100_000
"""Ids of all queues together, the last ones: some seconds of a busy node, and some megabytes."""


class Confirmed:
    """Of the whole door, since a client may ask again by another connection."""

    def __init__(self) -> None:
        self._topics: OrderedDict[str, str] = OrderedDict()
        """By id: the topic that it was of."""

    def remember(self, message_id: str, topic: str) -> None:
        self._topics[message_id] = topic
        self._topics.move_to_end(message_id)
        if len(self._topics) > CONFIRMED_REMEMBERED_MAX:
            self._topics.popitem(last=False)

    def topic_of(self, message_id: str) -> str | None:
        """The topic of the message that was acknowledged under this id; None if that is not remembered."""
        return self._topics.get(message_id)
