"""Transactions: take a message, make another of it, and have both or neither, once.

The acknowledgement and the publish become visible together. The id makes a second run of the same work, after a crash
for example, change nothing.
"""

from __future__ import annotations

import asyncio

import sealane


async def main() -> None:
    async with sealane.embedded() as lane:
        await lane.publish("orders", b"42")

        async for order in lane.consume("orders", subscription="invoicing"):
            number = order.payload.decode()

            try:
                async with lane.transaction(f"invoice {number}") as transaction:
                    await transaction.publish("invoices", b"a draft that nobody will see")
                    await transaction.ack(order)
                    raise ValueError("the printer is on fire")
            except ValueError as error:
                print(f"nothing happened, since {error}; topics: {await lane.topics()}")

            async with lane.transaction(f"invoice {number}") as transaction:
                await transaction.publish("invoices", f"invoice for order {number}".encode())
                await transaction.publish("letters", f"dear customer of order {number}".encode())
                await transaction.ack(order)
            print(f"committed; topics: {await lane.topics()}")

            async with lane.transaction(f"invoice {number}") as transaction:
                await transaction.publish("invoices", f"invoice for order {number}".encode())
            print(f"again under the same id: replayed is {transaction.replayed}")
            break

        stored = (await lane.describe_topic("invoices")).partitions[0].end
        print(f"invoices stored: {stored}")


asyncio.run(main())
