"""Reflection: what this door can be asked, for tools such as grpcurl that come without the `.proto`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

from grpc_reflection.v1alpha.reflection import aio
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest

from sealane.doors.grpc.calls import Call
from sealane.node.session import Session

SERVICES = ("grpc.reflection.v1.ServerReflection", "grpc.reflection.v1alpha.ServerReflection")
"""It has two names, and says the same under both of them."""


class Reflection:
    """Tells of these services."""

    def __init__(self, services: Sequence[str]) -> None:
        self._servicer = aio.ReflectionServicer(services)

    async def tell(self, session: Session, call: Call[ServerReflectionRequest]) -> None:
        async for answer in self._servicer.ServerReflectionInfo(_requests(call), None):
            await call.answer(answer)


async def _requests(call: Call[ServerReflectionRequest]) -> AsyncIterator[ServerReflectionRequest]:
    while (found := await call.next()) is not None:
        yield found[0]
