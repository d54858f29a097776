"""Client processes of Redis Streams, by redis-py with hiredis: pipelines of `XADD`, `XREADGROUP` with `XACK`."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import redis

from bench.peers.client import Job, Result, age_ms, done, main, paced, wait_for_the_start

STREAM = GROUP = CONSUMER = "bench"
FIELD = b"p"
BLOCK_MS = 1_000
PIPELINES = 3
"""On their way at a time, a connection and a thread each: while one is synced, the next is being made."""


def connect(job: Job) -> redis.Redis:
    return redis.Redis(host="127.0.0.1", port=job.port, protocol=2)


def publish(job: Job) -> Result:
    payloads = job.payloads()

    def some(batches: int) -> None:
        for _ in range(batches):
            with server.pipeline(transaction=False) as pipeline:
                for payload in payloads:
                    pipeline.xadd(STREAM, {FIELD: payload})
                pipeline.execute()

    batches = job.count // job.batch
    shares = [batches // PIPELINES + (number < batches % PIPELINES) for number in range(PIPELINES)]
    with connect(job) as server, ThreadPoolExecutor(PIPELINES) as threads:
        list(threads.map(lambda _: server.ping(), shares))
        begun_ns = wait_for_the_start()
        list(threads.map(some, shares))
        return done(begun_ns)


def received(server: redis.Redis, batch: int) -> Iterator[list[tuple[bytes, dict[bytes, bytes]]]]:
    """What there is, as soon as there is some. Each round trip also acknowledges what the one before it has brought."""
    entries: list[tuple[bytes, dict[bytes, bytes]]] = []
    while True:
        with server.pipeline(transaction=False) as pipeline:
            if entries:
                pipeline.xack(STREAM, GROUP, *(identity for identity, _ in entries))
            pipeline.xreadgroup(GROUP, CONSUMER, {STREAM: ">"}, count=batch, block=BLOCK_MS)
            found = pipeline.execute()[-1]
        entries = found[0][1] if found else []
        yield entries


def consume(job: Job) -> Result:
    with connect(job) as server:
        server.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        begun_ns = wait_for_the_start()
        left = job.count
        for entries in received(server, job.batch):
            left -= len(entries)
            if left == 0:
                server.xack(STREAM, GROUP, *(identity for identity, _ in entries))
                break
        return done(begun_ns)


def publish_at_a_pace(job: Job) -> Result:
    with connect(job) as server:
        server.ping()
        begun_ns = wait_for_the_start()
        for moment_ns in paced(job.count):
            server.xadd(STREAM, {FIELD: job.stamped(moment_ns)})
        return done(begun_ns)


def receive_at_a_pace(job: Job) -> Result:
    with connect(job) as server:
        server.xgroup_create(STREAM, GROUP, id="0", mkstream=True)
        begun_ns = wait_for_the_start()
        took_ms: list[float] = []
        for entries in received(server, job.batch):
            took_ms += (age_ms(fields[FIELD]) for _, fields in entries)
            if len(took_ms) == job.count:
                break
        return done(begun_ns, took_ms=took_ms)


if __name__ == "__main__":
    main(publish, consume, publish_at_a_pace, receive_at_a_pace)
