"""Over the wire: a node, a producer and a consumer, each a process of its own, on the loopback, with durable acks."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sealane
from bench.wire_client import TOPIC

ROOT = Path(__file__).parents[1]
DEADLINE_SECONDS = 300.0


@dataclass(frozen=True)
class RunningNode:
    url: str
    pid: int


@contextmanager
def running_node(directory: Path) -> Iterator[RunningNode]:
    """`sealane up` on free ports, with defaults for all that matters here."""
    ready, log = directory / "ready.json", directory / "node.log"
    ports = ["--set", "doors.native.port=0", "--set", "doors.http.port=0"]
    command = [sys.executable, "-m", "sealane", "up", "--insecure", "--data", str(directory / "data"), *ports]
    with log.open("wb") as output:
        process = subprocess.Popen([*command, "--ready-file", str(ready)], stdout=output, stderr=output)
    try:
        stop = time.monotonic() + DEADLINE_SECONDS
        while not ready.exists():
            if process.poll() is not None or time.monotonic() > stop:
                raise RuntimeError(f"the node did not start: {log.read_text()}")
            time.sleep(0.01)
        doors = json.loads(ready.read_text())["doors"]
        yield RunningNode(f"sealane://{doors['native']}", process.pid)
    finally:
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def together(url: str, producer: str, consumer: str, count: int, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """Start both, let them begin at once, and return what they tell in the end: the producer's, the consumer's."""
    with ExitStack() as ending:
        clients = []
        for work in (consumer, producer):
            command = [sys.executable, "-m", "bench.wire_client", work, url, str(count), str(batch)]
            client = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            ending.enter_context(client)
            ending.callback(client.kill)
            clients.append(client)
        for client in clients:
            assert client.stdout is not None
            assert client.stdout.readline() == "ready\n", "a client did not start"
        for client in clients:
            assert client.stdin is not None
            client.stdin.write("go\n")
            client.stdin.flush()
        said = [client.communicate(timeout=DEADLINE_SECONDS)[0] for client in clients]
        assert all(client.returncode == 0 for client in clients), "a client failed"
        consumed, produced = map(json.loads, said)
        return produced, consumed


def rate(directory: Path, producer: str, consumer: str, *, count: int, batch: int = 1) -> float:
    """Messages a second, from the first call to the last confirmed ack."""
    with running_node(directory) as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        produced, consumed = together(node.url, producer, consumer, count, batch)
    begun_ns = min(produced["begun_ns"], consumed["begun_ns"])
    return count / ((max(produced["ended_ns"], consumed["ended_ns"]) - begun_ns) / 1e9)


def latencies(directory: Path, *, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from a publish to its receipt, and to its message's arrival, sorted."""
    with running_node(directory) as node:
        produced, consumed = together(node.url, "publish_at_a_pace", "receive_at_a_pace", count, 1)
    return sorted(produced["took_ms"]), sorted(consumed["took_ms"])


def percentile(ordered: list[float], percent: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def idle_mebibytes(directory: Path) -> float:
    """What a node that nobody uses holds of the machine's memory."""
    with running_node(directory) as node:
        readings = []
        for _ in range(5):
            time.sleep(0.2)
            readings.append(_resident_bytes(node.pid))
    return statistics.median(readings) / (1 << 20)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
