"""What holds for every call: who makes it is found out before it is read, and whatever goes wrong becomes a status."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import DecodeError, Message

from sealane.doors.authorization import credentials_of
from sealane.doors.grpc.entry import DOOR, Entry
from sealane.doors.grpc.statuses import told
from sealane.doors.grpc.stays import Stay, Stays
from sealane.errors import InvalidArgument, SealaneError, Unauthenticated
from sealane.node.gate import Gate
from sealane.node.session import Session
from sealane.security.introductions import Introduction

M = TypeVar("M", bound=Message)


class Call(Generic[M]):
    """A call as the one who serves it has it. Each request is received when it is asked for."""

    def __init__(self, context: Any, kind: type[M], stay: Stay) -> None:
        self._context = context
        self._kind = kind
        self.stay = stay

    async def next(self) -> tuple[M, int] | None:
        """The next request, and how many bytes it had; None if there is no more. Raises `InvalidArgument`."""
        data = await self._context.read()
        if data is grpc.aio.EOF:
            return None
        try:
            return self._kind.FromString(data), len(data)
        except DecodeError:
            raise InvalidArgument("request", f"its bytes are no {self._kind.DESCRIPTOR.name}") from None

    async def only(self) -> M:
        """The request of a call that has one."""
        found = await self.next()
        if found is None:
            raise InvalidArgument("request", f"there is none, and a {self._kind.DESCRIPTOR.name} is needed")
        return found[0]

    async def answer(self, message: Message) -> None:
        """Return when it has left: that takes as long as the client does not read."""
        await self._context.write(message.SerializeToString())


Unary = Callable[[Session, M], Awaitable[Message]]
Stream = Callable[[Session, Call[M]], Awaitable[None]]


class Calls:
    """Makes handlers, as gRPC wants them, of those who serve a method."""

    def __init__(self, gate: Gate, entry: Entry, stays: Stays) -> None:
        self._gate = gate
        self._entry = entry
        self._stays = stays
        self._running: set[asyncio.Task[Any]] = set()

    @property
    def running(self) -> bool:
        """Whether some have begun and are not done."""
        return bool(self._running)

    async def finished(self, seconds: float) -> None:
        """Wait until all that have begun by now are done, and have cleared up behind them; so long at most."""
        if self._running:
            await asyncio.wait(self._running, timeout=seconds)

    def unary(self, serve: Unary[M], kind: type[M]) -> Any:
        """One request, one answer."""

        async def answered(requests: object, context: Any) -> bytes:
            async with self._answering(context) as stay:
                session = await self._session(context)
                return (await serve(session, await Call(context, kind, stay).only())).SerializeToString()

        # To gRPC it is a stream of one request: that is not read before we ask for it.
        return grpc.stream_unary_rpc_method_handler(answered)

    def stream(self, serve: Stream[M], kind: type[M]) -> Any:
        """Answers as it goes, for as long as its caller may and the node serves."""

        async def answered(requests: object, context: Any) -> None:
            async with self._answering(context) as stay:
                session = await self._session(context)
                with self._stays.entered(stay, session.principal, session.origin.address):
                    await serve(session, Call(context, kind, stay))

        return grpc.stream_stream_rpc_method_handler(answered)

    def public_unary(self, serve: Callable[[M], Message], kind: type[M]) -> Any:
        """One request, one answer, for everyone."""

        async def answered(requests: object, context: Any) -> bytes:
            async with self._answering(context) as stay:
                return serve(await Call(context, kind, stay).only()).SerializeToString()

        return grpc.stream_unary_rpc_method_handler(answered)

    def public_stream(self, serve: Callable[[Call[M]], Awaitable[None]], kind: type[M]) -> Any:
        """Answers as it goes, to everyone."""

        async def answered(requests: object, context: Any) -> None:
            async with self._answering(context) as stay:
                with self._stays.entered(stay, None, ""):
                    await serve(Call(context, kind, stay))

        return grpc.stream_stream_rpc_method_handler(answered)

    async def _session(self, context: Any) -> Session:
        self._stays.check()
        passage = self._entry.find(context.peer())
        if passage is None:
            raise Unauthenticated("this call has come by no connection of this door")
        shown = next((value for key, value in context.invocation_metadata() if key == "authorization"), None)
        if isinstance(shown, bytes):
            raise Unauthenticated("the authorization is not text")
        introduction = Introduction(credentials_of(shown), passage.certificate, passage.host, DOOR)
        return await passage.callers.session(self._gate, shown, introduction)

    @asynccontextmanager
    async def _answering(self, context: Any) -> AsyncIterator[Stay]:
        """Whatever is raised inside is what the call ends with."""
        stay = Stay()
        task = asyncio.current_task()
        assert task is not None, "a call is a task"
        self._running.add(task)
        try:
            yield stay
        except grpc.aio.BaseError:
            raise  # The call is over: its client has gone, or was answered.
        except asyncio.CancelledError:
            if stay.why is None:
                raise
            await self._refuse(context, stay.why)
        except Exception as error:
            await self._refuse(context, error)
        finally:
            self._running.discard(task)

    async def _refuse(self, context: Any, error: Exception) -> None:
        """End the call; returns never."""
        if isinstance(error, SealaneError):
            self._gate.refused(error)
        else:
            self._gate.supervisor.crashed("grpc call", error)
        status, text, metadata = told(error)
        await context.abort(status, text, metadata)
