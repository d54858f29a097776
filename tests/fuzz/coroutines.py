"""Running what is written for an event loop and never waits for anything: thousands of times a second."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


def at_once(work: Coroutine[Any, Any, T]) -> T:
    """What it returns, or raises."""
    try:
        work.send(None)
    except StopIteration as done:
        result: T = done.value
        return result
    work.close()
    raise AssertionError(f"{work!r} waits for something, and nothing is there that it could wait for")
