"""What a client process is asked to do, how it waits for its start, and what it tells in the end."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import dataclass
from typing import Any, Literal

TOPIC = SUBSCRIPTION = "bench"

Result = dict[str, Any]


@dataclass(frozen=True)
class Order:
    url: str
    count: int
    batch: int = 1
    size: int = 100
    topic: str = TOPIC
    subscription: str = SUBSCRIPTION
    start: Literal["earliest", "latest"] = "earliest"
    """Where a new subscription begins."""
    in_flight: int = 0
    """Batches on their way at a time; 0: as many as pay."""
    per_second: int = 1_000
    """Publishes a second, for works that keep a pace."""
    connections: int = 1
    """How many of the same kind one process holds."""
    profile: str = ""
    """The file by which it comes in; empty where nobody is asked."""
    seal_for: str = ""
    """The recipient for whom payloads are sealed, end to end."""
    open_with: str = ""
    """The file of the key by which they are opened."""

    def payloads(self, count: int) -> list[bytes]:
        """Random, so that nothing on the way gains by compressing them."""
        return [os.urandom(self.size) for _ in range(count)]


def wait_for_the_start() -> int:
    """Say that all is ready, and return the moment at which the word to go came."""
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic_ns()


def done(begun_ns: int, **seen: Any) -> Result:
    return {"begun_ns": begun_ns, "ended_ns": time.monotonic_ns(), **seen}
