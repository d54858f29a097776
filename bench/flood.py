"""What a flood of connections costs those who are inside: publishes at an easy pace, before it, in it and after it."""

from __future__ import annotations

import select
import subprocess
import sys
from collections import deque
from dataclasses import replace
from pathlib import Path
from socket import create_connection, socket
from typing import NamedTuple

import sealane
from bench.clients.order import TOPIC, Order
from bench.wire import latencies_at
from sealane.testing.node_process import NodeProcess


class Latencies(NamedTuple):
    """Milliseconds from a publish to its receipt, sorted."""

    before: list[float]
    meanwhile: list[float]
    after: list[float]
    opens: int
    """How many connections came."""


def latencies(directory: Path, *, count: int, per_second: int, at_once: int) -> Latencies:
    with NodeProcess(directory / "data") as node:
        with sealane.connect_sync(node.url) as lane:
            lane.create_topic(TOPIC)
        order = Order(node.url, count, per_second=per_second)
        before, _ = latencies_at(order)
        with subprocess.Popen(  # our own program, our own arguments
            [sys.executable, "-m", "bench.flood", node.doors["native"], str(at_once)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as flooding:
            assert flooding.stdout is not None
            flooding.stdout.readline()
            meanwhile, _ = latencies_at(replace(order, subscription="meanwhile", start="latest"))
            said, _ = flooding.communicate()
        after, _ = latencies_at(replace(order, subscription="after", start="latest"))
    return Latencies(before, meanwhile, after, int(said))


def flood(address: str, at_once: int) -> int:
    """Open connections one after the other, and hold so many, until our input ends. How many there were."""
    host, _, port = address.rpartition(":")
    opened: deque[socket] = deque()
    count = 0
    print("begun", flush=True)
    while not _is_over():
        opened.append(create_connection((host, int(port)), 60))
        count += 1
        if len(opened) > at_once:
            opened.popleft().close()
    return count


def _is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    print(flood(sys.argv[1], int(sys.argv[2])), flush=True)
