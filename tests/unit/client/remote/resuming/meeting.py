"""A lane and a scripted node that have met."""

from __future__ import annotations

from dataclasses import dataclass

import sealane
from tests.unit.client.remote.scripted_node import Visitor


@dataclass
class Meeting:
    """A lane, and the node's side of its first connection, which carries everything."""

    lane: sealane.Lane
    visitor: Visitor
