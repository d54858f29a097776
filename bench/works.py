"""Every work that can be measured, by name, with its amounts and what is asked of it."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import uvloop

from bench import in_process, start_up, wire
from bench.figures import percentile
from bench.work import Amounts, Part, Reading, Work

if TYPE_CHECKING:
    from bench.peers.peer import Peer

MESSAGE_RATE = "msg/s"
PERCENTS = (50, 95, 99, 99.9)
KIB = 1_024


# --- over the wire: a node, a producer and a consumer, a process each -------------------------------------------------


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
            ),
        ),
        _rate,
        {"clients": BATCHES, "count": 3_000_000, "batch": 5_000, "size": 100, "peer_less": 1},
        {"count": 500_000, "peer_less": 5},
        beside=_peer_rate,
        seconds=6,
        quick_seconds=3,
    ),
    Work(
        "wire-1k",
        "wire",
        (
            Part("rate", "1 KiB, publish_many of {batch:,}, consume_batches, ack", MESSAGE_RATE, ratio_reach=3.0),
            Part("megabytes", "1 KiB, the same, in payload bytes", "MB/s"),
        ),
        _rate,
        {"clients": BATCHES, "count": 600_000, "batch": 1_000, "size": KIB, "peer_less": 1},
        {"count": 100_000, "peer_less": 5},
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


# --- latency ----------------------------------------------------------------------------------------------------------


def _percentiles(side: str, ordered: Sequence[float]) -> dict[str, float]:
    return {f"{side}-p{percent:g}": percentile(ordered, percent) for percent in PERCENTS}


def _latencies(path: Path, amounts: Amounts) -> Reading:
    receipt, received = wire.latencies(path, count=amounts["count"], durable=amounts["durable"])
    values = {**_percentiles("receipt", receipt), **_percentiles("received", received)}
    return Reading(values, {"receipt-p50": receipt, "received-p50": received})


def _peer_latencies(peer: Peer, address: str, amounts: Amounts) -> Reading:
    received = peer.latencies(address, count=amounts["count"])
    return Reading(_percentiles("received", received), {"received-p50": received})


def _latency_parts(what: str, reaches: dict[str, float]) -> tuple[Part, ...]:
    return tuple(
        Part(f"{side}-p{p:g}", f"{what}, publish to {side}, p{p:g}", "ms", reaches.get(f"{side}-p{p:g}"), True)
        for side in ("received", "receipt")
        for p in PERCENTS
    )


LATENCY = (
    Work(
        "latency",
        "latency",
        _latency_parts(
            "1,000 single publishes a second",
            {"receipt-p50": 0.7, "receipt-p99": 3.0, "received-p50": 0.7, "received-p99": 3.0},
        ),
        _latencies,
        {"count": 5_000, "durable": True},
        {"count": 1_000},
        beside=_peer_latencies,
        seconds=8,
        quick_seconds=3,
    ),
    Work(
        "latency-memory",
        "latency",
        _latency_parts("1,000 single publishes a second, topic in memory", {"receipt-p50": 0.45, "received-p50": 0.45}),
        _latencies,
        {"count": 5_000, "durable": False},
        {"count": 1_000},
        seconds=8,
        quick_seconds=3,
    ),
)


# --- many clients -----------------------------------------------------------------------------------------------------


def _fan_out(path: Path, amounts: Amounts) -> Reading:
    from bench import fan_out

    return Reading({"rate": fan_out.rate(path, **amounts)})


def _crowd(path: Path, amounts: Amounts) -> Reading:
    from bench import crowd

    pair = wire.rate(_inner(path, "pair"), *BATCHES, count=amounts["count"], batch=amounts["batch"])
    everyone = crowd.rate(_inner(path, "crowd"), **amounts)
    return Reading({"rate": everyone, "ratio": everyone / pair, "pair": pair})


MANY = (
    Work(
        "fan-out",
        "fan-out",
        (Part("rate", "100 B, 1 → {consumers} broadcast, publish_many of {batch:,}", "deliveries/s", 1_500_000),),
        _fan_out,
        {"count": 1_000_000, "batch": 5_000, "consumers": 10},
        {"count": 200_000},
        seconds=12,
        quick_seconds=4,
    ),
    Work(
        "crowd",
        "crowd",
        (
            Part(
                "ratio",
                "{producers} producers, {consumers} consumers, {partitions} partitions, ÷ a single pair",
                "×",
                1.0,
            ),
            Part("rate", "the same, all of them together", MESSAGE_RATE),
            Part("pair", "the single pair, in the same round", MESSAGE_RATE),
        ),
        _crowd,
        {"count": 3_000_000, "batch": 5_000, "producers": 4, "consumers": 4, "partitions": 8},
        {"count": 400_000},
        seconds=14,
        quick_seconds=6,
    ),
)


def _inner(path: Path, name: str) -> Path:
    """An empty directory inside one."""
    (path / name).mkdir()
    return path / name


# --- memory and disk --------------------------------------------------------------------------------------------------


def _idle(path: Path, amounts: Amounts) -> Reading:
    from bench import memory

    return Reading({"idle": memory.idle(path)})


def _stored(path: Path, amounts: Amounts) -> Reading:
    from bench import memory

    return Reading({"stored": memory.stored(path, **amounts)})


def _over_time(path: Path, amounts: Amounts) -> Reading:
    from bench import memory

    readings = memory.over_time(path, **amounts)
    megabytes = [each for _, each in readings]
    middle, end = _third(megabytes, 1), _third(megabytes, 2)
    return Reading({"growth": (end / middle - 1) * 100, "most": max(megabytes)}, courses={"growth": megabytes})


def _third(values: Sequence[float], which: int) -> float:
    """The mean of one third of them: of the middle (1) or the end (2)."""
    third = max(1, len(values) // 3)
    some = values[which * third : (which + 1) * third]
    return sum(some) / len(some)


def _compacted(path: Path, amounts: Amounts) -> Reading:
    from bench import disk

    return Reading({"compacted": disk.compacted(path, **amounts)})


def _sequential(path: Path, amounts: Amounts) -> Reading:
    from bench import disk

    return Reading({"sequential": disk.sequential(path)})


SPACE = (
    Work(
        "memory-idle",
        "memory",
        (Part("idle", "memory of an idle node", "MB", 130, True),),
        _idle,
        {},
        rounds_max=3,
        seconds=4,
        quick_seconds=3,
    ),
    Work(
        "memory-stored",
        "memory",
        (Part("stored", "memory with {messages:,} messages stored", "MB", 250, True),),
        _stored,
        {"messages": 1_000_000},
        {"messages": 200_000},
        rounds_max=3,
        seconds=10,
        quick_seconds=4,
    ),
    Work(
        "memory-over-time",
        "memory",
        (
            Part(
                "growth", "memory over {seconds} s at {per_second:,} msg/s, last third ÷ middle third − 1", "%", 3, True
            ),
            Part("most", "the same, the most that was held", "MB"),
        ),
        _over_time,
        {"seconds": 300, "per_second": 100_000},
        {"seconds": 6, "per_second": 50_000},
        rounds_max=1,
        seconds=310,
        quick_seconds=10,
    ),
    Work(
        "disk-compacted",
        "disk",
        (Part("compacted", "disk, {messages:,} × 100 B of random payloads, compacted", "MB", 110, True),),
        _compacted,
        {"messages": 1_000_000},
        {"messages": 100_000},
        rounds_max=1,
        seconds=30,
        quick_seconds=5,
    ),
    Work(
        "disk-sequential",
        "disk",
        (Part("sequential", "the disk alone, large writes, each with its fdatasync", "MB/s"),),
        _sequential,
        {},
        rounds_max=3,
        seconds=3,
        quick_seconds=2,
    ),
)


# --- inside one process -----------------------------------------------------------------------------------------------


def _inside(work: Callable[..., Coroutine[Any, Any, float]]) -> Callable[[Path, Amounts], Reading]:
    return lambda path, amounts: Reading({"rate": uvloop.run(work(path, **amounts))})


def _starts(path: Path, amounts: Amounts) -> Reading:
    values = {}
    for part, fill in (("stopped", start_up.fill_now), ("crashed", start_up.crash_while_filled)):
        inner = _inner(path, part)
        fill(inner, **amounts)
        values[part] = uvloop.run(start_up.ready_seconds(inner))
    return Reading(values)


IN_PROCESS = (
    Work(
        "batches",
        "in-process",
        (Part("rate", "100 B, publish_many of {batch:,}, grant, ack", MESSAGE_RATE, 1_500_000),),
        _inside(in_process.batches),
        {"count": 600, "batch": 5_000},
        {"count": 60},
        quick_seconds=1,
    ),
    Work(
        "batches-100",
        "in-process",
        (Part("rate", "100 B, publish_many of {batch:,}, grant, ack", MESSAGE_RATE),),
        _inside(in_process.batches),
        {"count": 5_000, "batch": 100, "in_flight": 8},
        {"count": 500},
        quick_seconds=1,
    ),
    Work(
        "singles",
        "in-process",
        (Part("rate", "100 B, single publishes one after another", MESSAGE_RATE, 3_000),),
        _inside(in_process.singles),
        {"count": 10_000, "in_flight": 1},
        {"count": 1_000},
        quick_seconds=1,
    ),
    Work(
        "singles-64",
        "in-process",
        (Part("rate", "100 B, single publishes, {in_flight} in flight", MESSAGE_RATE, 50_000),),
        _inside(in_process.singles),
        {"count": 200_000, "in_flight": 64},
        {"count": 20_000},
        quick_seconds=1,
    ),
    Work(
        "one-by-one",
        "in-process",
        (Part("rate", "100 B, producer.send, async for message, ack", MESSAGE_RATE),),
        _inside(in_process.one_by_one),
        {"count": 400_000},
        {"count": 40_000},
        quick_seconds=1,
    ),
    Work(
        "start-up",
        "start-up",
        (
            Part("stopped", "ready after a stop, {topics:,} topics, {messages:,} messages", "s", 5.0, True),
            Part("crashed", "ready after a crash, {topics:,} topics, {messages:,} messages", "s", 30.0, True),
        ),
        _starts,
        {"topics": 1_000, "messages": 10_000_000},
        {"topics": 50, "messages": 250_000},
        rounds_max=1,
        seconds=120,
        quick_seconds=6,
    ),
)

WORKS = {work.name: work for work in (*WIRE, *LATENCY, *MANY, *SPACE, *IN_PROCESS)}
GROUPS = tuple(dict.fromkeys(work.group for work in WORKS.values()))
BESIDE_PEERS = tuple(work for work in WORKS.values() if work.beside is not None)
PROFILED = ("batches", "singles", "singles-64")
