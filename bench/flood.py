"""What a flood of connections costs those who are inside: publishes at an easy pace, before it, in it and after it."""

from __future__ import annotations

import argparse
import select
import ssl
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from socket import create_connection, socket
from typing import NamedTuple

import sealane
from bench.clients.order import TOPIC, Order
from bench.wire import latencies_at
from sealane.testing.node_process import NodeProcess

SHAKING_HANDS = "--shake-hands"


class Latencies(NamedTuple):
    """Milliseconds from a publish to its receipt, sorted."""

    before: list[float]
    meanwhile: list[float]
    after: list[float]
    opens: int
    """How many connections came."""


def latencies(directory: Path, *, count: int, per_second: int, at_once: int, handshakes: bool = False) -> Latencies:
    """Of a node as users have it, with TLS. With `handshakes` each of the flood shakes hands, and says no more."""
    with NodeProcess.secure(directory / "data") as node:
        with sealane.connect_sync(node.url, profile=node.profile) as lane:
            lane.create_topic(TOPIC)
        order = Order(node.url, count, per_second=per_second, profile=str(node.profile))
        before, _ = latencies_at(order)
        with subprocess.Popen(  # our own program, our own arguments
            [
                *(sys.executable, "-m", "bench.flood", node.doors["native"], str(at_once)),
                *([SHAKING_HANDS] if handshakes else []),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as flooding:
            assert flooding.stdout is not None
            flooding.stdout.readline()
            meanwhile, _ = latencies_at(replace(order, subscription="meanwhile", start="latest"))
            said, _ = flooding.communicate()
        after, _ = latencies_at(replace(order, subscription="after", start="latest"))
    return Latencies(before, meanwhile, after, int(said))


def flood(address: str, at_once: int, *, handshakes: bool) -> int:
    """Open connections one after the other, and hold so many, until our input ends. How many there were."""
    host, _, port = address.rpartition(":")
    strangers = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    strangers.check_hostname = False
    strangers.verify_mode = ssl.CERT_NONE  # Whom it attacks is all the same to it.
    opened: deque[socket] = deque()
    count = 0
    print("begun", flush=True)
    while not _is_over():
        came = create_connection((host, int(port)), 60)
        if handshakes:
            with suppress(OSError):  # It was turned away.
                came = strangers.wrap_socket(came)
        opened.append(came)
        count += 1
        if len(opened) > at_once:
            opened.popleft().close()
    return count


def _is_over() -> bool:
    return bool(select.select([sys.stdin], [], [], 0)[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.flood")
    parser.add_argument("address")
    parser.add_argument("at_once", type=int)
    parser.add_argument(SHAKING_HANDS, dest="handshakes", action="store_true")
    print(flood(**vars(parser.parse_args())), flush=True)
