"""What a client says to a node over the native protocol: frames, their headers, and what may be said when."""

from __future__ import annotations

from typing import get_args

from sealane.wire import messages as wire
from sealane.wire.errors import ProtocolError
from tests.fuzz.conversation import CONVERSATION, spoiled_frames
from tests.fuzz.hearing import heard, in_conversation
from tests.fuzz.target import Target

SEEDS = (*CONVERSATION, b"".join(CONVERSATION[:12]))
_EVERYTHING = frozenset(get_args(wire.ToNode))


def understood(data: bytes) -> tuple[int, bool]:
    """Let a node's side hear it, in one piece: how many messages were understood, and whether it broke a rule."""
    node = in_conversation("node")
    count = 0
    try:
        for message, _ in heard(node, data):
            count += 1
            assert type(message) in _EVERYTHING
    except ProtocolError as error:
        node.farewell(error, 0.0)  # There is always a last word to say.
        return count, True
    return count, False


def check(data: bytes) -> bool:
    count, broken = understood(data)
    return count > 0 and not broken


TARGET = Target("native", SEEDS, check, spoiled_frames)
