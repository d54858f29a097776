"""Ways to wait for what a broker does, in a thread."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import sealane
from sealane.node.describe import SubscriptionDescription

T = TypeVar("T")

DEADLINE_SECONDS = 60.0
"""No condition takes this long; a scenario that waits longer has failed."""


def eventually(condition: Callable[[], bool], seconds: float = DEADLINE_SECONDS) -> None:
    """Return as soon as the condition holds."""
    stop = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < stop, "it did not come to pass in time"
        time.sleep(0.002)


def take(items: Iterable[T], count: int) -> list[T]:
    """The next `count`, then leave the loop."""
    taken: list[T] = []
    for item in items:
        taken.append(item)
        if len(taken) == count:
            break
    return taken


def described(lane: sealane.SyncLane, topic: str, subscription: str) -> SubscriptionDescription:
    return next(each for each in lane.describe_topic(topic).subscriptions if each.name == subscription)


def run_together(*works: Callable[[], object]) -> None:
    """Each in a thread of its own; returns when all are done, and raises what one raised."""
    errors: list[BaseException] = []

    def guarded(work: Callable[[], object]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(DEADLINE_SECONDS)
        assert not thread.is_alive(), "a thread did not end in time"
    if errors:
        raise errors[0]
