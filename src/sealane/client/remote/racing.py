"""Reaching one of several nodes: the next address gets its chance before the last one has used up its time."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from sealane.client.remote.addresses import Endpoint
from sealane.client.remote.link import Link
from sealane.errors import (
    Forbidden,
    InvalidArgument,
    SealaneError,
    TooManyConnections,
    Unauthenticated,
    Unavailable,
    UntrustedNode,
)
from sealane.wire.errors import ProtocolError

STAGGER_SECONDS = 0.25
"""An address that has not answered by then gets company: one that swallows packets must not hold up the others."""
ATTEMPT_SECONDS_MAX = 5.0
"""For one address from the first packet to `Welcome`; long enough for a busy node."""
NO_COMMON_VERSION = "no-common-version"


def is_final(error: BaseException) -> bool:
    """Whether trying again cannot help: the node was reached and said no, or is not to be trusted, or what was asked of
    the client itself cannot be.
    """
    if isinstance(error, ProtocolError):
        return error.code == NO_COMMON_VERSION
    return isinstance(error, Unauthenticated | Forbidden | UntrustedNode | InvalidArgument)


async def first_to_answer(endpoints: Sequence[Endpoint], open_one: Callable[[Endpoint], Awaitable[Link]]) -> Link:
    """A link to whichever node answers first. Raises a final error at once, else `Unavailable` with every cause."""
    waiting = deque(endpoints)
    running: dict[asyncio.Task[Link], Endpoint] = {}
    causes: list[str] = []
    crowded: list[TooManyConnections] = []
    try:
        while waiting or running:
            if waiting:
                endpoint = waiting.popleft()
                running[asyncio.get_running_loop().create_task(_within_time(open_one(endpoint)))] = endpoint
            patience = STAGGER_SECONDS if waiting else None
            done, _ = await asyncio.wait(running, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                error = task.exception()
                if error is None:
                    del running[task]
                    return task.result()
                if is_final(error) or not isinstance(error, OSError | SealaneError):
                    raise error
                causes.append(f"{running.pop(task)}: {_cause(error)}")
                crowded += [error] if isinstance(error, TooManyConnections) else []
    finally:
        await _give_up(running)
    if crowded and len(crowded) == len(causes):
        raise crowded[-1]
    raise Unavailable("; ".join(causes) or "there is no address to try")


async def _within_time(opening: Awaitable[Link]) -> Link:
    try:
        async with asyncio.timeout(ATTEMPT_SECONDS_MAX):
            return await opening
    except TimeoutError:
        raise Unavailable(f"no answer within {ATTEMPT_SECONDS_MAX:g} s") from None


async def _give_up(running: dict[asyncio.Task[Link], Endpoint]) -> None:
    for task in running:
        task.cancel()
    for task in running:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            task.result().abort()  # It won a moment too late.


def _cause(error: BaseException) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__
