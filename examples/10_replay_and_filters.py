"""Replay: what was acknowledged stays in its topic for a time (7 days by default), and can be read again.

A new subscription starts wherever it wants; an old one is moved by `seek`; a filter chooses what it gets.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable

import sealane


async def read(messages: AsyncIterable[sealane.Message], count: int) -> str:
    payloads: list[str] = []
    async for message in messages:
        payloads.append(message.payload.decode())
        await message.ack(confirm=True)
        if len(payloads) == count:
            break
    return ", ".join(payloads)


async def main() -> None:
    async with sealane.embedded() as lane:
        for number in range(6):
            region = "eu" if number % 2 else "us"
            await lane.publish("orders", f"{region} {number}".encode(), headers={"region": region})

        print("the first time:", await read(lane.consume("orders", "billing"), 6))
        await lane.seek("orders", "billing", {0: 4})
        print("again from offset 4:", await read(lane.consume("orders", "billing"), 2))

        fourth = await anext(aiter(lane.consume("orders", subscription="look", start={0: 3}, auto_ack=True)))
        await lane.seek("orders", "billing", fourth.created)
        print("again from a moment:", await read(lane.consume("orders", "billing"), 3))

        europe = lane.consume("orders", "europe", filter="headers['region'] = 'eu' AND priority >= 5")
        print("a new subscription, filtered:", await read(europe, 3))


asyncio.run(main())
