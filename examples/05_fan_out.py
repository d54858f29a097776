"""Fan-out, in three ways.

Every subscription of a topic gets every message; a broadcast goes to every consumer of one subscription; and an
exchange leads a routing key to the topics that are bound to it.
"""

from __future__ import annotations

import asyncio

import sealane


async def first(lane: sealane.Lane, topic: str, subscription: str) -> str:
    async for message in lane.consume(topic, subscription=subscription):
        await message.ack()
        return message.payload.decode()
    raise AssertionError("the loop ends only when it is left")


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.publish("news", b"rain")
        print("two subscriptions:", await first(lane, "news", "radio"), await first(lane, "news", "paper"))

        async with (
            lane.consume("alarms", subscription="screens", mode="broadcast", start="latest") as left,
            lane.consume("alarms", subscription="screens", mode="broadcast", start="latest") as right,
        ):
            await lane.publish("alarms", b"fire")
            seen = [(await anext(aiter(screen))).payload.decode() for screen in (left, right)]
            print("two screens of one subscription:", *seen)

        await lane.declare_exchange("sales", "topic")
        await lane.bind("sales", "europe", "eu.#")
        await lane.bind("sales", "orders", "*.order")
        receipts = await lane.publish_to("sales", "eu.order", b"a bicycle")
        print("the exchange chose:", *sorted(receipts))
        try:
            await lane.publish_to("sales", "us.refund", b"a bicycle")
        except sealane.Unroutable as error:
            print("nothing is lost silently:", error)


asyncio.run(main())
