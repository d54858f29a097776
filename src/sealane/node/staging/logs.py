"""The logs of what is staged: a system topic in each domain that something is staged for."""

from __future__ import annotations

from collections.abc import Sequence

from sealane.delivery.staging import Part
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.node.owner import PartitionOwner
from sealane.node.registry import TopicRegistry
from sealane.node.supervision import Supervisor
from sealane.node.topic_config import TopicConfig
from sealane.node.topics import Topic

log = get_log("sealane.node")

STAGED = "_staged"
"""The topic's name. Its messages are nobody's yet: it is read by administrators alone."""


class StagedLogs:
    """All of a node's. A part whose batches are for several domains is in several of them."""

    def __init__(self, registry: TopicRegistry, supervisor: Supervisor) -> None:
        self._registry = registry
        self._supervisor = supervisor
        self._topics: dict[str, Topic] = {}
        """By domain: looking through all topics of a node for each batch would take too long."""
        self._trimming: set[PartitionOwner] = set()

    def find_all(self) -> None:
        """Look for them among the node's topics, once, when those are loaded."""
        self._topics = {topic.domain: topic for topic in self._registry.running.values() if topic.name == STAGED}

    def all(self) -> list[PartitionOwner]:
        """In the order of their domains; those that were deleted with their domain are left out."""
        self._topics = {domain: topic for domain, topic in self._topics.items() if topic.owners}
        return [self._topics[domain].owners[0] for domain in sorted(self._topics)]

    async def ensure(self, domain: str) -> PartitionOwner:
        """That of a domain, made now if nothing was staged for it before."""
        topic = self._topics.get(domain)
        if topic is None or not topic.owners:
            # What is staged says itself how long it is needed (`Partition.settled_floor`).
            topic = await self._registry.ensure(domain, STAGED, TopicConfig(retention_seconds=0))
            topic.check()
            self._topics[domain] = topic
        return topic.owners[0]

    def holding(self, part: bytes) -> list[tuple[PartitionOwner, Part]]:
        """Where batches of the part are, with what is there."""
        return [(owner, held) for owner in self.all() if (held := owner.core.staged.parts.get(part)) is not None]

    def topics_of(self, parts: Sequence[bytes]) -> list[str]:
        """The full names of the topics that the parts are for, in order."""
        return sorted({batch.topic for owner in self.all() for batch in owner.core.staged.batches(parts)})

    def trim(self) -> None:
        """Let everything go that nothing waits for any more; nobody waits for that."""
        for owner in self.all():
            if owner not in self._trimming and _floor(owner) > owner.core.start:
                self._trimming.add(owner)
                self._supervisor.spawn("staging trim", self._trim(owner), **owner.fields)

    async def _trim(self, owner: PartitionOwner) -> None:
        try:
            # Parts may go while this waits for the disk: then it looks again.
            while not owner.closed and (before := _floor(owner)) > owner.core.start:
                await owner.engine.trim(owner.key, messages_before=before)
                owner.core.trimmed(before)
        except (SealaneError, OSError) as error:
            log.warning("what was staged was not trimmed; retention will", **owner.fields, reason=str(error))
        finally:
            self._trimming.discard(owner)


def _floor(owner: PartitionOwner) -> int:
    return owner.core.staged.floor(owner.core.visible)
