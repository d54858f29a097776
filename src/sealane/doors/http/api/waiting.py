"""Waiting on behalf of a client, for as long as it is there and the door stays open."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

from starlette.exceptions import HTTPException
from starlette.requests import Request

T = TypeVar("T")

CLIENT_GONE = 400
"""Nobody reads this answer."""


async def while_there(request: Request, work: Awaitable[T]) -> T:
    """What comes of the work, which is cancelled when the client leaves or the door drains."""
    working = asyncio.ensure_future(work)
    leaving = asyncio.ensure_future(_gone(request))
    draining: asyncio.Future[None] = request.app.state.draining
    try:
        await asyncio.wait((working, leaving, draining), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if draining.done():
            raise HTTPException(
                503, "the node is about to stop; ask another one, or this one later", {"retry-after": "1"}
            )
        raise HTTPException(CLIENT_GONE, "the client has gone")
    finally:
        leaving.cancel()
        if not working.done():
            working.cancel()
            # What was under way gives back what it has taken before it ends.
            await asyncio.wait((working,))


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
