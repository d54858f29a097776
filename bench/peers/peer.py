"""A peer: another broker, measured as Sealane is, with one producer and one consumer process."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import ClassVar, Protocol

from bench.peers import installing
from bench.processes import module, seconds_over_all, together

LATENCY_BYTES = 100


class Peer(Protocol):
    """Another broker with its settings. Everything it needs to be compared, and to be skipped with a reason."""

    name: ClassVar[str]
    """In file names and raw numbers."""
    title: ClassVar[str]
    """In tables and plots."""
    durable: ClassVar[bool]
    """Whether messages are on disk at all."""
    durability: ClassVar[str]
    """What an acknowledgement means, in one sentence."""
    settings: ClassVar[str]
    """Server and client settings, in one sentence."""
    count: ClassVar[int]
    """Messages of 100 B that take it a few seconds: a round of a comparison need not be longer."""
    in_quick: ClassVar[bool] = True
    """Whether a quick run measures it without having been asked for it by name."""

    def absent(self) -> str | None:
        """None, or why it cannot run here and what to install. Installs nothing."""
        ...

    def missing(self) -> str | None:
        """The same, after having tried to install it."""
        ...

    def versions(self) -> dict[str, str]:
        """Versions of the server and of its Python client."""
        ...

    def running(self, directory: Path) -> AbstractContextManager[str]:
        """A server of its own on free ports of the loopback, its data in this directory; yields its address."""
        ...

    def rate(self, address: str, *, count: int, size: int) -> float:
        """Messages a second from the first call to the last confirmed ack, the producer and the consumer at once."""
        ...

    def latencies(self, address: str, *, count: int) -> list[float]:
        """Milliseconds from a publish to its arrival at the consumer, at 1,000 single publishes a second, sorted."""
        ...


class ServedPeer(Peer):
    """A peer whose clients are a module of this package, and whose server is a program."""

    client: ClassVar[str]
    """The module of its client processes."""
    packages: ClassVar[tuple[str, ...]]
    """The Python packages that its clients need, from the `bench` extra."""
    server_name: ClassVar[str]
    """What has `server_version`; the server's program too, where a Debian package brings one."""
    debian_package: ClassVar[str | None] = None
    services: ClassVar[tuple[str, ...]] = ()
    """What the Debian package would start by itself."""
    producing: ClassVar[str] = "publish"
    """What its producer does for a rate, by the name of the work."""
    batch: ClassVar[int] = 500
    """Messages that are sent together; counts are rounded down to whole ones."""

    @abstractmethod
    def server_version(self) -> str: ...

    def program(self) -> str:
        """The server's program, where it is installed; else its name."""
        return installing.program(self.server_name) or self.server_name

    def absent(self) -> str | None:
        lacking = [package for package in self.packages if not _has(package)]
        if lacking:
            return f"{self.title}: no {', '.join(lacking)} here; run: pip install 'sealane[bench]'"
        if self.debian_package is not None and installing.program(self.server_name) is None:
            return f"{self.title}: no {self.server_name} here; run: {installing.install_line(self.debian_package)}"
        return None

    def missing(self) -> str | None:
        failure = None
        if self.debian_package is not None and installing.program(self.server_name) is None:
            failure = installing.install(self.debian_package, *self.services)
        reason = self.absent()
        return f"{reason} ({failure})" if reason and failure else reason

    def versions(self) -> dict[str, str]:
        return {self.server_name: self.server_version(), **{name: version(name) for name in self.packages}}

    def rate(self, address: str, *, count: int, size: int) -> float:
        count -= count % self.batch
        return count / seconds_over_all(self._pair(address, "consume", self.producing, count, size))

    def latencies(self, address: str, *, count: int) -> list[float]:
        consumed, _ = self._pair(address, "receive_at_a_pace", "publish_at_a_pace", count, LATENCY_BYTES)
        return sorted(consumed["took_ms"])

    def _pair(self, address: str, consumer: str, producer: str, count: int, size: int) -> list[dict]:
        return together(
            [module(self.client, work, address, count, self.batch, size) for work in (consumer, producer)],
        )


def _has(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True
