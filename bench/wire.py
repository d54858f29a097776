"""Over the wire: a node, a producer and a consumer, each a process of its own, on the loopback, with durable acks."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import sealane
from bench.wire_client import TOPIC
from sealane.testing.node_process import NodeProcess

ROOT = Path(__file__).parents[1]
DEADLINE_SECONDS = 300.0


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
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        produced, consumed = together(node.url, producer, consumer, count, batch)
    begun_ns = min(produced["begun_ns"], consumed["begun_ns"])
    return count / ((max(produced["ended_ns"], consumed["ended_ns"]) - begun_ns) / 1e9)


def latencies(directory: Path, *, count: int) -> tuple[list[float], list[float]]:
    """Milliseconds from a publish to its receipt, and to its message's arrival, sorted."""
    with NodeProcess(directory / "data") as node:
        produced, consumed = together(node.url, "publish_at_a_pace", "receive_at_a_pace", count, 1)
    return sorted(produced["took_ms"]), sorted(consumed["took_ms"])


def percentile(ordered: list[float], percent: float) -> float:
    return ordered[min(len(ordered) - 1, int(len(ordered) * percent / 100))]


def idle_mebibytes(directory: Path) -> float:
    """What a node that nobody uses holds of the machine's memory."""
    with NodeProcess(directory / "data") as node:
        readings = []
        for _ in range(5):
            time.sleep(0.2)
            readings.append(_resident_bytes(node.pid))
    return statistics.median(readings) / (1 << 20)


def _resident_bytes(pid: int) -> int:
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")
