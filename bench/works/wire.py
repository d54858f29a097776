"""Over the wire: a node, a producer and a consumer, a process each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench import wire
from bench.work import MESSAGE_RATE, Amounts, Part, Reading, Work

if TYPE_CHECKING:
    from bench.peers.peer import Peer

KIB = 1_024


def _rate(path: Path, amounts: Amounts) -> Reading:
    producer, consumer = amounts["clients"]
    size = amounts.get("size", 100)
    found = wire.rate(
        path, producer, consumer, count=amounts["count"], batch=amounts.get("batch", 1), size=amounts.get("size", 100)
    )
    return Reading({"rate": found, "megabytes": found * size / 1e6})


def _peer_rate(peer: Peer, address: str, amounts: Amounts) -> Reading:
    size = amounts["size"]
    # A peer knows how many messages take it a few seconds; in batches that any of them may use.
    count = max(1_000, peer.count // amounts["peer_less"] // 1_000 * 1_000)
    found = peer.rate(address, count=count, size=size)
    return Reading({"rate": found, "megabytes": found * size / 1e6}, notes={"messages": f"{count:,}"})


BATCHES = ("publish_many", "consume_batches")

WIRE = (
    Work(
        "wire-batches",
        "wire",
        (
            Part(
                "rate",
                "100 B, publish_many of {batch:,}, consume_batches, ack",
                MESSAGE_RATE,
                1_200_000,
                ratio_reach=8.0,
                title_beside="100 B, end to end",
            ),
        ),
        _rate,
        {"clients": BATCHES, "count": 6_000_000, "batch": 5_000, "size": 100, "peer_less": 1},
        {"count": 500_000, "peer_less": 8},
        beside=_peer_rate,
        seconds=6,
        quick_seconds=3,
    ),
    Work(
        "wire-1k",
        "wire",
        (
            Part(
                "rate",
                "1 KiB, publish_many of {batch:,}, consume_batches, ack",
                MESSAGE_RATE,
                ratio_reach=3.0,
                title_beside="1 KiB, end to end",
            ),
            Part("megabytes", "1 KiB, the same, in payload bytes", "MB/s"),
        ),
        _rate,
        {"clients": BATCHES, "count": 600_000, "batch": 1_000, "size": KIB, "peer_less": 1},
        {"count": 100_000, "peer_less": 8},
        beside=_peer_rate,
        seconds=6,
        quick_seconds=3,
    ),
    Work(
        "wire-batches-100",
        "wire",
        (Part("rate", "100 B, publish_many of {batch:,}, consume_batches, ack", MESSAGE_RATE, 300_000),),
        _rate,
        {"clients": BATCHES, "count": 1_000_000, "batch": 100},
        {"count": 100_000},
        seconds=6,
    ),
    Work(
        "wire-one-by-one",
        "wire",
        (Part("rate", "100 B, producer.send, async for message, ack", MESSAGE_RATE, 200_000),),
        _rate,
        {"clients": ("send", "consume"), "count": 1_000_000},
        {"count": 100_000},
        seconds=7,
    ),
    Work(
        "wire-blocking",
        "wire",
        (Part("rate", "100 B, the same with the blocking client", MESSAGE_RATE, 60_000),),
        _rate,
        {"clients": ("send_blocking", "consume_blocking"), "count": 1_000_000},
        {"count": 100_000},
        seconds=7,
    ),
)
