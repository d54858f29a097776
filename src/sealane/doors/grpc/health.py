"""Whether the node serves: `GetNodeHealth`, and gRPC's own health service, which load balancers ask. For everyone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from grpc_health.v1 import health_pb2

from sealane._version import __version__
from sealane.doors.grpc import swarmmq_pb2 as pb
from sealane.doors.grpc.calls import Call
from sealane.doors.grpc.messages import duration_of
from sealane.errors import NotFound

SERVICES = ("", pb.DESCRIPTOR.services_by_name["SwarmMQ"].full_name)
"""What can be asked about; the empty name is the node as a whole."""

_Status = health_pb2.HealthCheckResponse


class Health:
    """`problems` says why the node does not serve; nothing when it does."""

    def __init__(self, node_id: str, problems: Callable[[], Sequence[str]]) -> None:
        self._node_id = node_id
        self._problems = problems
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._passed = asyncio.Event()

    def tick(self) -> None:
        """Time has passed: whoever watches looks again."""
        self._passed.set()
        self._passed = asyncio.Event()

    def node_health(self, request: pb.HealthRequest) -> pb.HealthResponse:
        problems = list(self._problems())
        return pb.HealthResponse(
            status=pb.HealthResponse.NOT_SERVING if problems else pb.HealthResponse.SERVING,
            node_id=self._node_id,
            version=__version__,
            problems=problems,
            uptime=duration_of(round((self._loop.time() - self._began) * 1e6)),
        )

    def check(self, request: health_pb2.HealthCheckRequest) -> health_pb2.HealthCheckResponse:
        if request.service not in SERVICES:
            raise NotFound(request.service, "there is no such service behind this door")
        return _Status(status=self._status(request.service))

    async def watch(self, call: Call[health_pb2.HealthCheckRequest]) -> None:
        """Tell it now, and whenever it has become another one."""
        request = await call.only()
        told = None
        while True:
            passed, status = self._passed, self._status(request.service)
            if status != told:
                await call.answer(_Status(status=status))
                told = status
            await passed.wait()

    def _status(self, service: str) -> int:
        if service not in SERVICES:
            return int(_Status.SERVICE_UNKNOWN)
        return int(_Status.NOT_SERVING if self._problems() else _Status.SERVING)
