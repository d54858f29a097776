"""One way to speak to a node, whatever door it is by: what scenarios that run through every door need of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sealane.delivery.config import Mode


@dataclass(frozen=True)
class Given:
    """A message to publish."""

    payload: bytes
    key: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    priority: int = 5
    ttl: float | None = None
    delay: float = 0
    id: str | None = None


@dataclass(frozen=True)
class Taken:
    """A message that was taken under a lease. `hold` is by what its door answers for it."""

    id: str
    payload: bytes
    key: bytes | None
    headers: dict[str, str]
    priority: int
    attempt: int
    offset: int
    hold: Any = field(compare=False)


class Refused(Exception):
    """The node said no; `code` is its word for why, the same by every door."""

    def __init__(self, code: str, text: str) -> None:
        self.code = code
        super().__init__(f"{code}: {text}")


class Speaker(Protocol):
    """A client of one door. Whatever is refused raises `Refused`."""

    async def publish(self, topic: str, *messages: Given) -> list[str]:
        """Their ids, once they are durable."""

    async def take(self, topic: str, subscription: str, count: int, *, mode: Mode = "queue") -> list[Taken]:
        """The next `count`, as soon as they are there."""

    async def ack(self, topic: str, subscription: str, taken: Sequence[Taken]) -> None:
        """Returns when that is durable."""

    async def nack(
        self, topic: str, subscription: str, taken: Sequence[Taken], *, delay: float | None, reason: str | None
    ) -> None: ...

    async def extend(self, topic: str, subscription: str, taken: Sequence[Taken], seconds: float) -> None: ...

    async def transact(
        self, name: str, publishes: dict[str, list[Given]], acks: Sequence[tuple[str, str, Sequence[Taken]]]
    ) -> None:
        """Publishes by topic, and acks of (topic, subscription, messages)."""
