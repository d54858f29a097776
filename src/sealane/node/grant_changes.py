"""What follows when grants change: whoever may no longer consume a topic gets nothing more of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sealane.errors import Forbidden
from sealane.log import get_log

if TYPE_CHECKING:
    from sealane.node.node import Node

log = get_log("sealane.node")


def cut_off_forbidden(node: Node) -> None:
    """Look at every consumer once. What one that is cut off was handed before can still be answered."""
    for topic in list(node.topics.values()):
        for attachment in list(topic.attachments.values()):
            if attachment.principal is None:
                continue
            try:
                node.identity.grants.authorise(attachment.principal, "consume", topic.full_name)
            except Forbidden as error:
                log.info("a consumer is cut off", topic=topic.full_name, principal=attachment.principal.name)
                attachment.leave()
                attachment.consumer.closed(error)
                node.supervisor.spawn("cut off a consumer", attachment.detach(), topic=topic.full_name)
