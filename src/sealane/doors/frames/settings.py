"""What the frames door can be told."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from sealane.doors.nameless.settings import MiB, NamelessDoorSettings
from sealane.errors import InvalidArgument, InvalidName
from sealane.message import Limits, check_name, split_topic

DeliveryMode = Literal["broadcast", "queue"]


@dataclass(frozen=True, slots=True)
class FramesDoorSettings(NamelessDoorSettings):
    """`doors.frames.*` in the configuration."""

    port: int = 9080
    """0 picks a free one."""
    mode: DeliveryMode = "broadcast"
    """`broadcast`: every consumer gets what comes while it is there. `queue`: each message goes to one of them, and
    waits until there is one."""
    topic: str = "frames"
    """Where producers publish, and from where consumers get it."""
    subscription: str = "frames"
    """The one that all consumers share."""
    consumers_max: int = 10
    """As the document has it; one more is told that there are too many."""
    consumer_buffer_messages: int = 10_000
    """What one consumer may have been handed that is not in its socket yet."""
    frame_bytes_max: int = 1 * MiB
    """Beyond it a frame is refused as soon as its length is known; never more than `limits.payload_bytes_max`."""

    def __post_init__(self) -> None:
        self.check("frames")
        for name in ("consumers_max", "consumer_buffer_messages", "frame_bytes_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"doors.frames.{name}", f"is {getattr(self, name):,}, at least 1")
        if self.mode not in get_args(DeliveryMode):
            raise InvalidArgument(
                "doors.frames.mode", f"{self.mode!r} is not one of {', '.join(get_args(DeliveryMode))}"
            )
        domain, topic = split_topic(self.topic)
        _check("topic", "domain", domain)
        _check("topic", "topic", topic)
        _check("subscription", "subscription", self.subscription)


def _check(setting: str, kind: str, name: str) -> None:
    try:
        check_name(kind, name, Limits())
    except InvalidName as error:
        raise InvalidArgument(f"doors.frames.{setting}", f"cannot be: {error}") from None
