"""Retries: a failed message comes again after a pause; after its last attempt it is a dead letter, with its reason.

When the bug is mended, `redrive` sends the dead letters back to the subscription that gave them up.
"""

from __future__ import annotations

import asyncio

import sealane

RETRY = sealane.Retry("exponential", delay_seconds=0.02, delay_seconds_max=1.0, attempts_max=3)


async def bill(lane: sealane.Lane, *, count: int, is_mended: bool) -> None:
    """Handle messages until `count` of them are billed or have failed for good."""
    ended = 0
    async for order in lane.consume("orders", subscription="billing", retry=RETRY):
        if order.payload == b"order 2" and not is_mended:
            print(f"{order.payload.decode()}: attempt {order.attempt} failed")
            await order.nack(reason="customer has no address")
            ended += order.attempt == RETRY.attempts_max
        else:
            print(f"{order.payload.decode()}: billed")
            await order.ack()
            ended += 1
        if ended == count:
            break


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.publish_many("orders", [b"order 1", b"order 2", b"order 3"])
        await bill(lane, count=3, is_mended=False)

        async for dead in lane.consume("orders.billing.dead", subscription="look"):
            story = dead.headers
            print(f"dead letter after {story['sealane-dead-attempts']} attempts: {story['sealane-dead-reason']}")
            await dead.ack()
            break

        report = await lane.redrive("orders", "billing", dry_run=True)
        print(f"would come back: {report.messages}, because of {dict(report.reasons)}")
        await lane.redrive("orders", "billing", filter="headers['sealane-dead-reason'] LIKE '%address%'")
        await bill(lane, count=1, is_mended=True)


asyncio.run(main())
