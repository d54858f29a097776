"""Retention: settled messages stay for their topic's time, unsettled ones until they are settled."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sealane.delivery.config import SECOND_US
from sealane.errors import SealaneError
from sealane.log import get_log
from sealane.node.audit_log import AUDIT_LOG

if TYPE_CHECKING:
    from sealane.node.node import Node
    from sealane.node.topics import Topic

log = get_log("sealane.node")


class Retention:
    """A task that trims what is both old and settled."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        self._task = self._node.supervisor.keep("retention", self._run)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._node.settings.retention_check_seconds)
            await self.apply()

    async def apply(self) -> None:
        """Look at every topic once, and at what is staged."""
        try:
            await self._node.staging.tidy()
        except (SealaneError, OSError) as error:
            log.warning("what was staged too long ago is kept for now", reason=str(error))
        except Exception as error:
            # Topics have their retention all the same.
            self._node.supervisor.crashed("staging", error)
        for topic in list(self._node.topics.values()):
            try:
                await self._trim(topic)
            except (SealaneError, OSError) as error:
                log.warning("retention waits", topic=topic.full_name, reason=str(error))
            except Exception as error:
                # The other topics have theirs all the same.
                self._node.supervisor.crashed("retention", error, topic=topic.full_name)

    async def _trim(self, topic: Topic) -> None:
        for owner in list(topic.owners):
            horizon_us = owner.clock() - round(topic.config.retention_seconds * SECOND_US)
            old_below = await owner.engine.offset_at(owner.key, horizon_us)
            await owner.journal.forget_history()
            before = min(old_below, owner.core.settled_floor(), owner.core.visible)
            if before > owner.core.start:
                if topic.full_name == AUDIT_LOG and self._node.audit.is_on:
                    await self._node.audit.log.let_go_before(before)
                await owner.engine.trim(owner.key, messages_before=before)
                owner.core.trimmed(before)
                log.info("messages are past retention", **owner.fields, offset_before=before)
