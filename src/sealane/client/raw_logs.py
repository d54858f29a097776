"""Logs as they are: what is in them, the messages themselves, and how far a reader with its own position has come."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from sealane.client.asking import Asking
from sealane.engine import Stored
from sealane.node.history import HISTORY_BYTES_MAX, History
from sealane.node.logs import TopicLog


class RawLogs(Asking):
    """A lane's commands; see `Lane`."""

    async def logs(self, *topics: str, at: datetime | None = None) -> list[TopicLog]:
        """What there is to read of these topics, in order of their names: where each partition begins and ends.

        A name may be a pattern (`shop/*`), which takes in the topics there are, as far as one may consume them. With
        `at`, each partition says too where the messages begin that were created at or after that moment.
        """
        self._check_open()
        return await self._asked(self._broker.logs(topics, at), "logs")

    async def browse(
        self,
        topic: str,
        partition: int = 0,
        offset: int = 0,
        *,
        bytes_max: int = 1 << 20,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> list[Stored]:
        """Stored messages as they are, from an offset, about `bytes_max` of them; nothing is leased. Empty: the end.

        They come in the batches in which they are stored: the first may begin before `offset`, and with `stop`, at
        which the reader wants to end, the last may go beyond it. With `incarnation` (see `logs`), a topic that was
        deleted and made again raises `TopicNotFound`: its offsets mean other messages.
        """
        self._check_open()
        browsing = self._broker.browse(
            topic, partition, offset, bytes_max=bytes_max, incarnation=incarnation, stop=stop
        )
        return await self._asked(browsing, "browse")

    async def history(
        self,
        topic: str,
        partition: int = 0,
        entry: int = 0,
        *,
        bytes_max: int = HISTORY_BYTES_MAX,
        incarnation: int | None = None,
        stop: int | None = None,
    ) -> History:
        """What has happened to a partition's messages, from a journal entry on: `rows` is a table with a row for each
        grant, ack, failure and so on, and `next_entry` is where to go on. No rows and no further `next_entry`: the end.

        It is kept for as long as the topic's messages are. `incarnation` and `stop` are as for `browse`.
        """
        self._check_open()
        reading = self._broker.history(topic, partition, entry, bytes_max=bytes_max, incarnation=incarnation, stop=stop)
        return await self._asked(reading, "history")

    async def advance(self, topic: str, subscription: str, positions: Mapping[int, int]) -> None:
        """Settle everything below these offsets, by partition, for a reader that keeps its own position (Spark does).

        The subscription is made if it is new, and begins there; it never goes back. The node shows how far behind it
        is, and keeps what it has not passed.
        """
        self._check_open()
        await self._asked(self._broker.advance(topic, subscription, positions), "advance")
