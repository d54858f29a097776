"""What the log says of each message's life: published, delivered, acknowledged, come back. Never what is in it."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from sealane.log import get_log

log = get_log("sealane.doors.cipher")


class Lives:
    """One line for what happens to one message. For several at once it is one line for all of them, and one for each
    where the log tells of details.
    """

    def __init__(self, *, told: bool) -> None:
        self._told = told

    def published(self, message_ids: Sequence[str], *, exchange: str, key: str) -> None:
        self._tell("a message was published", "messages were published", message_ids, exchange=exchange, key=key)

    def delivered(self, message_ids: Sequence[str], *, queue: str, consumer: str) -> None:
        self._tell("a message was delivered", "messages were delivered", message_ids, queue=queue, consumer=consumer)

    def acknowledged(self, message_ids: Sequence[str], *, queue: str, consumer: str) -> None:
        one, several = "a message was acknowledged", "messages were acknowledged"
        self._tell(one, several, message_ids, queue=queue, consumer=consumer)

    def came_back(self, message_ids: Sequence[str], *, queue: str, consumer: str, why: str) -> None:
        one, several = "a message came back", "messages came back"
        self._tell(one, several, message_ids, queue=queue, consumer=consumer, why=why)

    def _tell(self, one: str, several: str, message_ids: Sequence[str], **fields: str) -> None:
        if not self._told or not message_ids:
            return
        if len(message_ids) == 1:
            log.info(one, message_id=message_ids[0], **fields)
            return
        log.info(several, count=len(message_ids), first=message_ids[0], last=message_ids[-1], **fields)
        if log.is_heard(logging.DEBUG):
            for message_id in message_ids:
                log.debug(one, message_id=message_id, **fields)
