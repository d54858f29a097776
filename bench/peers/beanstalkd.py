"""beanstalkd with its binlog, synced for each change."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import ServedPeer
from bench.peers.serving import first_line, free_ports, serving


class Beanstalkd(ServedPeer):
    name = "beanstalkd"
    title = "beanstalkd"
    durable = True
    durability = "fsync of the binlog before each reply, to put and to delete"
    settings = (
        "-b -f 0; greenstalk, 4 connections for the producer and 4 for the consumer, "
        "on each a put, a reserve or a delete at a time; latency: one connection each"
    )
    count = 10_000
    client = "bench.peers.beanstalkd_client"
    packages = ("greenstalk",)
    server_name = "beanstalkd"
    debian_package = "beanstalkd"
    services = ("beanstalkd",)
    batch = 4

    def server_version(self) -> str:
        return first_line(self.program(), "-v").split()[-1]

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        (port,) = free_ports(1)
        command = [self.program(), "-l", "127.0.0.1", "-p", str(port), "-b", str(directory), "-f", "0"]
        with serving(command, port, directory / "beanstalkd.log"):
            yield f"127.0.0.1:{port}"
