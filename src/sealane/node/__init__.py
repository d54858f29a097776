"""One running node: its topics and partitions, and the commands that every door and the in-process client use."""

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
