"""A request's body is bounded in size and in the time that it may take to arrive, whatever the route does with it."""

from __future__ import annotations

import asyncio

from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sealane.doors.http.problem import Problem

# What is still on its way would be read as the next request.
_LAST_ANSWER = {"connection": "close"}


class BodyLimit:
    """Answers 413 for more than `bytes_max`, announced or not, and 408 when it takes longer than `seconds_max`."""

    def __init__(self, app: ASGIApp, *, bytes_max: int, seconds_max: float) -> None:
        self._app = app
        self._bytes_max = bytes_max
        self._seconds_max = seconds_max

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self._bytes_max:
            await Problem(413, self._too_large, headers=_LAST_ANSWER)(scope, receive, send)
            return
        await self._app(scope, self._bounded(receive), send)

    @property
    def _too_large(self) -> str:
        return f"the body is larger than {self._bytes_max:,} bytes (doors.http.body_bytes_max)"

    def _bounded(self, receive: Receive) -> Receive:
        """The same messages; what breaks a limit is raised in the route that reads them, as any refusal is."""
        received = 0
        complete = False
        deadline = asyncio.get_running_loop().time() + self._seconds_max

        async def receive_bounded() -> Message:
            nonlocal received, complete
            if complete:
                # What is left to hear is that the client has gone, and for that one may wait.
                return await receive()
            try:
                if _has_all_come(receive):
                    message = await receive()
                else:
                    async with asyncio.timeout_at(deadline):
                        message = await receive()
            except TimeoutError:
                problem = f"the body took longer than {self._seconds_max:g} s (doors.http.receive_seconds_max)"
                raise HTTPException(408, problem, _LAST_ANSWER) from None
            received += len(message.get("body", b""))
            complete = not message.get("more_body", False)
            if received > self._bytes_max:
                raise HTTPException(413, self._too_large, _LAST_ANSWER)
            return message

        return receive_bounded


def _has_all_come(receive: Receive) -> bool:
    """Whether there is nothing to wait for, which uvicorn knows: a short body comes with its head, and a timer for it
    would take longer than reading it.
    """
    return getattr(getattr(receive, "__self__", None), "more_body", True) is False
