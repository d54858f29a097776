"""A client process of a measurement: `python -m bench.wire_client WORK URL COUNT [BATCH [SIZE]]`.

It says `ready` when it is connected, begins when it is told to by a line on its standard input, and ends with a line of
JSON: when it began and ended (`CLOCK_MONOTONIC`, the same for every process of the machine), and what it has seen.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Coroutine
from typing import Any

import uvloop

import sealane
from bench.clients import batches, connections, paced, singles
from bench.clients.order import Order, Result
from bench.processes import module

WORKS: dict[str, Callable[[sealane.Lane, Order], Coroutine[Any, Any, Result]]] = {
    work.__name__: work
    for work in (
        batches.publish_many,
        batches.publish_many_at_a_pace,
        batches.consume_batches,
        batches.share_batches,
        singles.send,
        singles.consume,
        paced.publish_at_a_pace,
        paced.receive_at_a_pace,
    )
}
CONNECTING_WORKS: dict[str, Callable[[Order], Coroutine[Any, Any, Result]]] = {
    work.__name__: work for work in (batches.consume_broadcast, connections.stay_connected)
}
"""Those that hold connections of their own."""
BLOCKING_WORKS: dict[str, Callable[[sealane.SyncLane, Order], Result]] = {
    work.__name__: work for work in (singles.send_blocking, singles.consume_blocking)
}


def command(work: str, order: Order) -> list[str]:
    """The command line of such a process."""
    options = (
        "topic",
        "subscription",
        "start",
        "in_flight",
        "per_second",
        "connections",
        "profile",
        "seal_for",
        "open_with",
    )
    flags = [f"--{name.replace('_', '-')}={getattr(order, name)}" for name in options]
    return module("bench.wire_client", work, order.url, order.count, order.batch, order.size, *flags)


async def run(work: str, order: Order) -> Result:
    if work in CONNECTING_WORKS:
        return await CONNECTING_WORKS[work](order)
    access: dict[str, Any] = {"profile": order.profile} if order.profile else {}
    async with sealane.connect(order.url, **access) as lane:
        return await WORKS[work](lane, order)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.wire_client", description=__doc__)
    parser.add_argument("work", choices=[*WORKS, *CONNECTING_WORKS, *BLOCKING_WORKS])
    parser.add_argument("url")
    parser.add_argument("count", type=int)
    parser.add_argument("batch", type=int, nargs="?", default=Order.batch)
    parser.add_argument("size", type=int, nargs="?", default=Order.size)
    parser.add_argument("--topic", default=Order.topic)
    parser.add_argument("--subscription", default=Order.subscription)
    parser.add_argument("--start", choices=("earliest", "latest"), default=Order.start)
    parser.add_argument("--in-flight", type=int, default=Order.in_flight)
    parser.add_argument("--per-second", type=int, default=Order.per_second)
    parser.add_argument("--connections", type=int, default=Order.connections)
    for name in ("--profile", "--seal-for", "--open-with"):
        parser.add_argument(name, default="")
    given = vars(parser.parse_args())
    work = given.pop("work")
    order = Order(**given)
    if work in BLOCKING_WORKS:
        with sealane.connect_sync(order.url) as lane:
            result = BLOCKING_WORKS[work](lane, order)
    else:
        result = uvloop.run(run(work, order))
    # Not printed: where output is unbuffered, a write to a full pipe may be cut short.
    with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as output:
        output.write(json.dumps(result).encode())


if __name__ == "__main__":
    main()
