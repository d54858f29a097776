"""Exactly once by id: a sender that is not sure whether a message arrived sends it again under the same id.

The broker stores it once, answers the repeat with the first one's receipt, and remembers ids across restarts.
"""

from __future__ import annotations

import asyncio
import tempfile
import uuid

import sealane

PAYMENTS = uuid.UUID("0d4b3a56-7a39-4f5b-9d2e-6f0c1f3e5a11")


async def pay(lane: sealane.Lane, order: str) -> sealane.Receipt:
    # An id that follows from what is said: whoever says it again says it under the same id.
    return await lane.publish("payments", order.encode(), id=uuid.uuid5(PAYMENTS, order))


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with sealane.embedded(directory) as lane:
            first = await pay(lane, "order 42")
            again = await pay(lane, "order 42")
            other = await pay(lane, "order 43")
            print(f"offsets: first {first.offset}, repeated {again.offset}, another {other.offset}")

        async with sealane.embedded(directory) as lane:
            late = await pay(lane, "order 42")
            stored = (await lane.describe_topic("payments")).partitions[0].end
            print(f"after a restart: repeated {late.offset}; stored in all: {stored}")


asyncio.run(main())
