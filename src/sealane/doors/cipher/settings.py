"""What the cipher door can be told."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.delivery.config import ATTEMPTS_MAX, LEASE_SECONDS_DEFAULT, Retry, SubscriptionConfig, check_config
from sealane.doors.nameless.settings import MiB, NamelessDoorSettings
from sealane.errors import InvalidArgument, InvalidName
from sealane.message import Limits, check_name


@dataclass(frozen=True, slots=True)
class CipherDoorSettings(NamelessDoorSettings):
    """`doors.cipher.*` in the configuration."""

    port: int = 5672
    """0 picks a free one."""
    subscription: str = "cipher"
    """A queue is a topic with one subscription, which has this name: all consumers of the queue share it."""
    lease_seconds: float = LEASE_SECONDS_DEFAULT
    """A message that is not acknowledged within this time is delivered again, at once."""
    attempts_max: int = ATTEMPTS_MAX
    """How often that may happen before a message is a dead letter: as often as can be, since CipherMQ tries for ever.
    With a lease of 30 s that is eight hours. What a connection has not acknowledged when it ends is not counted."""
    window_messages: int = 1_000
    """Messages that are pushed to one consumer ahead of its acks. CipherMQ pushes all that there are: clients may take
    a few hundred before they acknowledge the first."""
    line_bytes_max: int = 16 * MiB
    """One line: a full batch in JSON fits. A longer one is refused when its end has come."""
    log_messages: bool = True
    """Write a line to the log when a message is published, delivered, acknowledged or comes back, with its id."""

    def __post_init__(self) -> None:
        self.check("cipher")
        try:
            check_config(self.subscription_config)
            check_name("subscription", self.subscription, Limits())
        except InvalidArgument as error:
            name = error.argument.removeprefix("retry.")
            raise InvalidArgument(f"doors.cipher.{name}", error.problem) from None
        except InvalidName as error:
            raise InvalidArgument("doors.cipher.subscription", str(error)) from None
        for name in ("window_messages", "line_bytes_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"doors.cipher.{name}", f"is {getattr(self, name):,}, at least 1")

    @property
    def subscription_config(self) -> SubscriptionConfig:
        """Of every queue: whose time is over goes to the next at once, as the document has it."""
        retry = Retry("fixed", delay_seconds=0.0, attempts_max=self.attempts_max)
        return SubscriptionConfig("queue", self.lease_seconds, None, retry)
