"""`sealane.connect`: a lane to a node somewhere else."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from sealane._version import __version__
from sealane.client.lane import CLOSE_SECONDS, TIMEOUT_SECONDS, Lane
from sealane.client.remote.addresses import parse_urls
from sealane.client.remote.broker import RemoteBroker
from sealane.client.remote.credentials import NoCredentials
from sealane.client.remote.pool import CONNECTIONS_DEFAULT, Pool
from sealane.errors import InvalidArgument
from sealane.node.surroundings import of_this_machine
from sealane.wire.messages import PROTOCOL_VERSION, Hello

CONNECT_SECONDS = 10.0
HEARTBEAT_SECONDS = 15.0
NAME_CHARS = 100
"""What the node hears of a lane's name; more would only fill its log."""


class RemoteLane:
    """What `sealane.connect` returns: connects on entering the block, closes the lane on leaving it."""

    def __init__(
        self,
        urls: str | Sequence[str],
        *,
        timeout: float,
        connect_timeout: float,
        connections: int,
        heartbeat_seconds: float,
        name: str | None,
    ) -> None:
        for argument, seconds in (
            ("timeout", timeout),
            ("connect_timeout", connect_timeout),
            ("heartbeat_seconds", heartbeat_seconds),
        ):
            if not seconds > 0:
                raise InvalidArgument(argument, f"{seconds} is not a number of seconds above 0")
        self._timeout_seconds = timeout
        self._connect_seconds = connect_timeout
        self._surroundings = of_this_machine()
        software = f"sealane-python/{__version__}" + (f" ({name[:NAME_CHARS]})" if name else "")
        self._hello = Hello([PROTOCOL_VERSION], software, heartbeat_seconds=heartbeat_seconds)
        self._addresses = parse_urls(urls)
        self._connections = connections
        self._broker: RemoteBroker | None = None
        self._lane: Lane | None = None

    async def __aenter__(self) -> Lane:
        entropy = self._surroundings.entropy
        pool = Pool(self._addresses, self._hello, NoCredentials(), entropy, self._connections)
        try:
            welcome = await pool.open(self._connect_seconds)
        except BaseException:
            await pool.close(seconds=0)
            raise
        limits, timeout = welcome.limits.limits(), self._timeout_seconds
        self._broker = broker = RemoteBroker(pool, limits, self._surroundings, timeout_seconds=timeout)
        self._lane = Lane(broker, timeout_seconds=timeout, explain=lambda: broker.trouble)
        return self._lane

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """After an error nobody waits for the node: it is told what goes back, and the sockets are closed."""
        lane, broker = self._lane, self._broker
        if lane is None or broker is None:
            return
        try:
            if kind is None:
                await lane.close()
            else:
                lane.abandon()
        finally:
            await broker.close(seconds=CLOSE_SECONDS if kind is None else 0)


def connect(
    urls: str | Sequence[str],
    *,
    timeout: float = TIMEOUT_SECONDS,
    connect_timeout: float = CONNECT_SECONDS,
    connections: int = CONNECTIONS_DEFAULT,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    name: str | None = None,
) -> RemoteLane:
    """A lane to a node: `async with sealane.connect("sealane://127.0.0.1:7070") as lane:`.

    Several hosts (`sealane://a:7070,b`, or a list of URLs) are tried in a random order, each address of a DNS name too.
    A lost connection is made again for as long as the lane is open: publishes and subscriptions go on, each call until
    its `timeout`. Raises `Unavailable` if no node answers within `connect_timeout`. `connections` is how many the lane
    may use: one for publishes and commands, the others for consumers. `name` shows in the node's log.
    """
    return RemoteLane(
        urls,
        timeout=timeout,
        connect_timeout=connect_timeout,
        connections=connections,
        heartbeat_seconds=heartbeat_seconds,
        name=name,
    )
