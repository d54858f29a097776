"""Names that the shell completes: asked of the node, quickly and silently."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from sealane.cli.connecting import DEFAULT_DATA, ask

if TYPE_CHECKING:
    from sealane.client import Lane

COMPLETION_SECONDS = 2.0
"""A shell that waits longer for a name feels broken."""


def complete_topic(ctx: Any, incomplete: str) -> list[str]:
    return _names(ctx, incomplete, lambda lane: lane.topics())


def complete_subscription(ctx: Any, incomplete: str) -> list[str]:
    # While an option waits for its value, arguments are left unread beside it.
    topic = ctx.params.get("topic") or next((each for each in ctx.args if not each.startswith("-")), None)
    if topic is None:
        return []

    async def names(lane: Lane) -> list[str]:
        return [each.name for each in (await lane.describe_topic(topic)).subscriptions]

    return _names(ctx, incomplete, names)


def complete_exchange(ctx: Any, incomplete: str) -> list[str]:
    async def names(lane: Lane) -> list[str]:
        return list(await lane.exchanges())

    return _names(ctx, incomplete, names)


def _names(ctx: Any, incomplete: str, names: Callable[[Lane], Awaitable[list[str]]]) -> list[str]:
    async def within(lane: Lane) -> list[str]:
        async with asyncio.timeout(COMPLETION_SECONDS):
            return await names(lane)

    try:
        # A profile that cannot be read, a node that is not there: completion is no place to say so.
        data = ctx.params.get("data") or DEFAULT_DATA
        found = ask(ctx.params.get("url"), data, within, seconds=COMPLETION_SECONDS)
    except (Exception, SystemExit):
        return []
    bare = [name.removeprefix("default/") for name in found]
    return [name for name in bare if name.startswith(incomplete)]
