"""Letting a node grow before it is measured: messages, topics, connections."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import sealane
from bench.clients.order import Order
from bench.processes import ROOT, together
from bench.wire_client import command
from sealane.testing.node_process import NodeProcess

BIG_TOPIC = "big"
BATCH = 10_000
"""The most that `publish_many` puts into one batch."""
MESSAGE_BYTES = 100
STORED_BYTES = 2 * 130
"""What a message may take on the disk for a while: in the log, and in the compacted file that is to replace it."""
STORE_SECONDS_MAX = 1_800.0

TOPIC_MESSAGES = 100
"""What each of many topics holds; half of it is settled by a subscription."""

REST_SECONDS = 3.0
"""A node looks for up to two seconds whether a burst is over before it compacts what that has left."""
REST_SECONDS_MAX = 1_800.0


class NoRoom(RuntimeError):
    """The disk has not enough free for what is to be stored."""


def store(node: NodeProcess, messages: int) -> None:
    """Fill the big topic, with a subscription that has settled one batch and is behind by all others; wait until
    compaction is through. Raises `NoRoom` before it begins if the disk would run full.
    """
    free = shutil.disk_usage(node.data.parent).free
    needed = messages * STORED_BYTES
    if free < needed:
        raise NoRoom(f"{messages:,} messages may need {needed / 1e9:.1f} GB for a while, {free / 1e9:.1f} GB are free")
    with sealane.connect_sync(node.url) as lane:
        lane.create_topic(BIG_TOPIC)
        with lane.consume_batches(BIG_TOPIC, "behind", messages_max=BATCH) as batches:
            lane.publish_many(BIG_TOPIC, [os.urandom(MESSAGE_BYTES) for _ in range(BATCH)])
            next(iter(batches)).ack(confirm=True)
    order = Order(node.url, messages // BATCH * BATCH, BATCH, MESSAGE_BYTES, topic=BIG_TOPIC)
    together([command("publish_many", order)], STORE_SECONDS_MAX)
    wait_until_it_rests(node)


def create_topics(node: NodeProcess, topics: int) -> None:
    """So many topics, each with messages and a subscription that has settled half of them."""
    with sealane.connect_sync(node.url) as lane:
        for number in range(topics):
            topic = f"topic-{number}"
            lane.publish_many(topic, [os.urandom(MESSAGE_BYTES) for _ in range(TOPIC_MESSAGES)])
            with lane.consume_batches(topic, "half", messages_max=TOPIC_MESSAGES // 2) as batches:
                next(iter(batches)).ack(confirm=True)


@contextmanager
def connected(node: NodeProcess, connections: int) -> Iterator[None]:
    """So many connections from one process, which does nothing but answer heartbeats."""
    holding = command("stay_connected", Order(node.url, 0, connections=connections))
    with subprocess.Popen(holding, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdin is not None
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError(f"{connections:,} connections could not be opened")
            process.stdin.write("go\n")
            process.stdin.flush()
            yield
            if process.poll() is not None:
                raise RuntimeError("the process that held the connections ended meanwhile")
        finally:
            process.kill()


def wait_until_it_rests(node: NodeProcess) -> None:
    """Return once no compaction has run for a while: it is a process of its own, and the node's only child."""
    deadline = time.monotonic() + REST_SECONDS_MAX
    resting_since = time.monotonic()
    while time.monotonic() - resting_since < REST_SECONDS:
        if time.monotonic() > deadline:
            raise TimeoutError(f"compaction was not through within {REST_SECONDS_MAX:g} s")
        if Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().strip():
            resting_since = time.monotonic()
        time.sleep(0.05)
