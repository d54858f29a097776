"""One message at a time, with the pipelined producer and acks that nobody waits for; asynchronous and blocking."""

from __future__ import annotations

from itertools import cycle, islice

import sealane
from bench.clients.order import Order, Result, done, wait_for_the_start

PAYLOADS = 1_000
"""So many different ones, again and again: making each anew would be measured too."""


async def send(lane: sealane.Lane, order: Order) -> Result:
    payloads = islice(cycle(order.payloads(PAYLOADS)), order.count)
    begun_ns = wait_for_the_start()
    async with lane.producer(order.topic) as producer:
        for payload in payloads:
            await producer.send(payload)
    return done(begun_ns)


async def consume(lane: sealane.Lane, order: Order) -> Result:
    received = 0
    async with lane.consume(order.topic, order.subscription, start=order.start) as messages:
        begun_ns = wait_for_the_start()
        async for message in messages:
            received += 1
            await message.ack(confirm=received == order.count)
            if received == order.count:
                break
    return done(begun_ns)


def send_blocking(lane: sealane.SyncLane, order: Order) -> Result:
    payloads = islice(cycle(order.payloads(PAYLOADS)), order.count)
    begun_ns = wait_for_the_start()
    with lane.producer(order.topic) as producer:
        for payload in payloads:
            producer.send(payload)
    return done(begun_ns)


def consume_blocking(lane: sealane.SyncLane, order: Order) -> Result:
    received = 0
    with lane.consume(order.topic, order.subscription) as messages:
        begun_ns = wait_for_the_start()
        for message in messages:
            received += 1
            message.ack(confirm=received == order.count)
            if received == order.count:
                break
    return done(begun_ns)
