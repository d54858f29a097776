"""`sealane.connect`: a lane to a node somewhere else."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import TracebackType

from sealane._version import __version__
from sealane.client.finding import ProfileLike
from sealane.client.lane import CLOSE_SECONDS, TIMEOUT_SECONDS, Lane
from sealane.client.remote.access import Given, find_access
from sealane.client.remote.broker import RemoteBroker
from sealane.client.remote.pem import PemLike
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
        given: Given,
        *,
        timeout: float,
        connect_timeout: float,
        connections: int,
        heartbeat_seconds: float,
        name: str | None,
        wait_when_limited: bool,
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
        self._access = find_access(given, self._surroundings)
        self._connections = connections
        self._wait_when_limited = wait_when_limited
        self._broker: RemoteBroker | None = None
        self._lane: Lane | None = None

    async def __aenter__(self) -> Lane:
        nodes, tls, credentials = self._access
        entropy = self._surroundings.entropy
        pool = Pool(nodes.addresses, self._hello, credentials, entropy, self._connections, tls)
        try:
            welcome = await pool.open(self._connect_seconds)
        except BaseException:
            await pool.close(seconds=0)
            raise
        limits, timeout = welcome.limits.limits(), self._timeout_seconds
        self._broker = broker = RemoteBroker(
            pool, limits, self._surroundings, timeout_seconds=timeout, wait_when_limited=self._wait_when_limited
        )
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
    urls: str | Sequence[str] | None = None,
    *,
    profile: ProfileLike | None = None,
    ca: PemLike | None = None,
    certificate: PemLike | None = None,
    certificate_key: PemLike | None = None,
    key: str | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    data: str | os.PathLike[str] | None = None,
    timeout: float = TIMEOUT_SECONDS,
    connect_timeout: float = CONNECT_SECONDS,
    connections: int = CONNECTIONS_DEFAULT,
    heartbeat_seconds: float = HEARTBEAT_SECONDS,
    name: str | None = None,
    wait_when_limited: bool = True,
) -> RemoteLane:
    """A lane to a node: `async with sealane.connect("sealanes://broker.example:7070") as lane:`.

    `sealanes://` is TLS, `sealane://` plain text. Several hosts (`sealanes://a:7070,b`, or a list of URLs) are tried in
    a random order, each address of a DNS name too. Without a URL it is the node that the command line would find:
    by `SEALANE_URL`, in the data directory (`data`), in the user's profiles.

    Who is asking: a `profile` (its name, its file, or a `Profile`), or a client's `certificate` with its
    `certificate_key`, an API `key`, a `user` with a `password`, or a `token`; without any, what the profile of that
    address says. `ca` is who may have issued the node's certificate. `ca`, `certificate` and `certificate_key` are
    PEM texts or files, which are read again when they have changed.

    A lost connection is made again for as long as the lane is open: publishes and subscriptions go on, each call until
    its `timeout`. Raises `Unavailable` if no node answers within `connect_timeout`, `UntrustedNode` if it may not be
    the one that was meant, `Unauthenticated` if it does not take who is asking. `connections` is how many the lane may
    use: one for publishes and commands, the others for consumers. `name` shows in the node's log.

    What a quota refuses is sent again when the node said, in its order, and raises `RateLimited` when that would be
    after its `timeout`; with `wait_when_limited` false at once.
    """
    return RemoteLane(
        Given(urls, profile, ca, certificate, certificate_key, key, user, password, token, data),
        timeout=timeout,
        connect_timeout=connect_timeout,
        connections=connections,
        heartbeat_seconds=heartbeat_seconds,
        name=name,
        wait_when_limited=wait_when_limited,
    )
