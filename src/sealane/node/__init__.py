"""One running node: its topics and partitions, and the commands that every door and the in-process client use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sealane.node.consumers import Consumer, Revocation
    from sealane.node.deliveries import Delivery, Part
    from sealane.node.node import Node
    from sealane.node.settings import NodeSettings, StagingSettings, TopicSettings
    from sealane.node.topic_config import TopicConfig

__all__ = [
    "Consumer",
    "Delivery",
    "Node",
    "NodeSettings",
    "Part",
    "Revocation",
    "StagingSettings",
    "TopicConfig",
    "TopicSettings",
]

_HOMES = {
    "Consumer": "consumers",
    "Delivery": "deliveries",
    "Node": "node",
    "NodeSettings": "settings",
    "Part": "deliveries",
    "Revocation": "consumers",
    "StagingSettings": "settings",
    "TopicConfig": "topic_config",
    "TopicSettings": "settings",
}


def __getattr__(name: str) -> Any:
    """Load a part when it is first asked for: a client of a node elsewhere needs some of them, and never the node."""
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
