"""ZeroMQ PUSH to PULL: two processes and a socket, with no broker and nothing kept. The ceiling of the others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.peer import ServedPeer
from bench.peers.serving import free_ports


class ZeroMq(ServedPeer):
    name = "zeromq"
    title = "ZeroMQ PUSH/PULL"
    durable = False
    durability = "none: nothing is stored or acknowledged, and what is on its way is lost with its process"
    settings = "tcp, one I/O thread and the default marks of 1,000 messages; pyzmq, one message a call, copied"
    count = 1_000_000
    client = "bench.peers.zeromq_client"
    packages = ("pyzmq",)
    server_name = "libzmq"

    def server_version(self) -> str:
        import zmq  # Not there where the `bench` extra is not.

        return zmq.zmq_version()

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        (port,) = free_ports(1)
        yield f"tcp://127.0.0.1:{port}"
