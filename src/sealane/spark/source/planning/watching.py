"""What the driver knows of its topics' logs, and whether positions in them are still good."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from sealane.log import get_log
from sealane.node.logs import PartitionLog, TopicLog
from sealane.spark.errors import DataLoss, Loss, shown_losses
from sealane.spark.options.access import with_retries
from sealane.spark.options.options import ReadOptions
from sealane.spark.source.planning.offsets import Positions, check_topics, gone, losses, moved_on

log = get_log("sealane.spark")


class Watch:
    """One reader's view, on the driver."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._told: set[Loss | str] = set()

    def look(self, at: datetime | None = None) -> Sequence[TopicLog]:
        """What there is to read now, by one request. With `at`, partitions say where messages of that moment begin."""
        topics = self._options.topics
        what = f"reading topic {', '.join(topics)}"
        found = with_retries(self._options.access, what, lambda lane: lane.logs(*topics, at=at))
        return found if self._options.log == "messages" else [_of_history(log) for log in found]

    def checked(self, positions: Positions, logs: Sequence[TopicLog]) -> Positions:
        """The positions, behind what is gone, if that may be: once it is told in the log.

        Raises `DataLoss`, and, whatever the options say, `TopicRecreated` and `LogCutShort`.
        """
        check_topics(positions, logs)
        missing, lost = gone(positions, logs), losses(positions, logs)
        if self._options.fail_on_data_loss:
            if missing is not None:
                raise missing
            if lost:
                raise DataLoss(lost)
        if missing is not None and missing.name not in self._told:
            self._told.add(missing.name)
            log.warning("a topic is gone that was not read to its end", topic=missing.name)
        new = [loss for loss in lost if loss not in self._told]
        if new:
            self._told.update(new)
            log.warning("messages are gone that were not read", lost=shown_losses(new))
        return moved_on(positions, logs)


def _of_history(log: TopicLog) -> TopicLog:
    """The same topic, where it is the journals that are read: entries take the place of offsets."""
    partitions = [
        PartitionLog(at.partition, at.journal_start, at.journal_end, None, at.journal_start, at.journal_end)
        for at in log.partitions
    ]
    return TopicLog(log.name, log.incarnation, partitions)
