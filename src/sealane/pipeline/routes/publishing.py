"""Weights on their way to the routers."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING

from sealane.routing.weights import RouteWeights

if TYPE_CHECKING:
    from sealane.client.sync import SyncLane

WEIGHTS_TOPIC = "_system/routes"
HEADERS = {"content-type": "application/json"}

_VERSIONS = uuid.uuid5(uuid.NAMESPACE_URL, "sealane:_system/routes")


def message_id(version: int) -> uuid.UUID:
    """The id of a version's message: whoever publishes it again publishes the same one."""
    return uuid.uuid5(_VERSIONS, str(version))


def publish_weights(lane: SyncLane, weights: RouteWeights, topic: str = WEIGHTS_TOPIC) -> None:
    """Tell the routers; returns when that is durable. Again is no harm: it is stored once, and routers ignore a version
    that they have.
    """
    weights.check()
    lane.publish(topic, weights.to_bytes(), headers=HEADERS, id=message_id(weights.version))
