"""Client processes of beanstalkd, by greenstalk: put, reserve, delete, each a call and its answer.

The protocol knows no batches: BATCH is how many connections each process has, so that many calls are on their way.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import greenstalk

from bench.peers.client import Job, Result, age_ms, done, main, paced, wait_for_the_start


def connect(job: Job) -> greenstalk.Client[bytes]:
    return greenstalk.Client(("127.0.0.1", job.port), encoding=None)


def at_once(job: Job, work: Callable[[greenstalk.Client[bytes]], object]) -> Result:
    """The work, once for each message, by a thread on each connection."""
    with ExitStack() as ending:
        servers = [ending.enter_context(connect(job)) for _ in range(job.batch)]
        threads = ending.enter_context(ThreadPoolExecutor(job.batch))

        def share(server: greenstalk.Client[bytes]) -> None:
            for _ in range(job.count // job.batch):
                work(server)

        begun_ns = wait_for_the_start()
        list(threads.map(share, servers))
        return done(begun_ns)


def publish(job: Job) -> Result:
    payload = job.payloads()[0]
    return at_once(job, lambda server: server.put(payload))


def consume(job: Job) -> Result:
    return at_once(job, lambda server: server.delete(server.reserve()))


def publish_at_a_pace(job: Job) -> Result:
    with connect(job) as server:
        begun_ns = wait_for_the_start()
        for moment_ns in paced(job.count):
            server.put(job.stamped(moment_ns))
        return done(begun_ns)


def receive_at_a_pace(job: Job) -> Result:
    took_ms: list[float] = []
    with connect(job) as server:
        begun_ns = wait_for_the_start()
        for _ in range(job.count):
            message = server.reserve()
            took_ms.append(age_ms(message.body))
            server.delete(message)
        return done(begun_ns, took_ms=took_ms)


if __name__ == "__main__":
    main(publish, consume, publish_at_a_pace, receive_at_a_pace)
