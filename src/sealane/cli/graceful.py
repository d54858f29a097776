"""Ctrl-C lets a command finish what it has in hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

FINISH_SECONDS = 5.0
"""How long that may take; whoever presses Ctrl-C again does not wait at all."""


async def finish_in_hand(work: Coroutine[Any, Any, None], stop: Callable[[], bool]) -> None:
    """Do the work. When it is cancelled, `stop` tells it to come to its end, and says whether that is worth waiting
    for; then it is over, and `CancelledError` is raised.
    """
    working = asyncio.get_running_loop().create_task(work)
    try:
        await asyncio.wait([working])
    except asyncio.CancelledError:
        if stop():
            await asyncio.wait([working], timeout=FINISH_SECONDS)
        raise
    finally:
        working.cancel()
        await asyncio.wait([working])
        if not working.cancelled():
            working.exception()  # Raised below; after Ctrl-C it is of no interest.
    working.result()
