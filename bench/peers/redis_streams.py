"""Redis Streams, with the append-only file synced before each reply or once a second."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from bench.peers.peer import ServedPeer
from bench.peers.serving import first_line, free_ports, serving

CLIENTS = (
    "no snapshots, no rewrites; redis-py (blocking, which was faster than asyncio) with hiredis; "
    "producer: pipelines of 500 XADD, 3 of them on their way; "
    "consumer: XREADGROUP COUNT 500, each pipelined with the XACK of the one before; "
    "latency: an XADD of its own for each message"
)


class RedisStreams(ServedPeer):
    """One `appendfsync` of Redis; what differs between the two is said by the classes below."""

    durable = True
    client = "bench.peers.redis_client"
    packages = ("redis", "hiredis")
    server_name = "redis-server"
    debian_package = "redis-server"
    services = ("redis-server",)
    append_sync: ClassVar[str]

    def server_version(self) -> str:
        return first_line(self.program(), "--version").split("v=")[-1].split()[0]

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        (port,) = free_ports(1)
        command = [self.program(), "--bind", "127.0.0.1", "--port", str(port), "--dir", str(directory)]
        # No snapshots and no rewrites: both would be work beside what is measured.
        command += ["--save", "", "--appendonly", "yes", "--appendfsync", self.append_sync]
        command += ["--auto-aof-rewrite-percentage", "0"]
        with serving(command, port, directory / "redis.log"):
            yield f"127.0.0.1:{port}"


class RedisAlways(RedisStreams):
    name = "redis-aof-always"
    title = "Redis Streams, AOF always"
    append_sync = "always"
    durability = "fsync of the append-only file before each reply, one for all commands that arrived together"
    settings = f"appendfsync {append_sync}, {CLIENTS}"
    count = 300_000


class RedisEverysec(RedisStreams):
    name = "redis-aof-everysec"
    title = "Redis Streams, AOF everysec"
    append_sync = "everysec"
    durability = (
        "written to the page cache before each reply, synced once a second: a crash of the machine loses up to 2 s"
    )
    settings = f"appendfsync {append_sync}, {CLIENTS}"
    count = 300_000
