"""Over the network: a producer and a consumer go on while the node is killed and comes back.

A real node would be there already: `sealane up`. Here the example starts one of its own, to kill it.
"""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import suppress
from pathlib import Path

import sealane
from sealane.testing.node_process import NodeProcess

ORDERS = 200


async def produce(url: str, halfway: asyncio.Event) -> None:
    async with sealane.connect(url) as lane:
        for number in range(ORDERS):
            # Returns once the order is on the node's disk, however often the connection is lost meanwhile.
            await lane.publish("orders", b"order %d" % number)
            if number == ORDERS // 2:
                halfway.set()


async def consume(url: str) -> set[bytes]:
    billed: set[bytes] = set()
    async with sealane.connect(url) as lane:
        async for message in lane.consume("orders", subscription="billing"):
            billed.add(message.payload)  # Before the ack: an order may come twice, and never not at all.
            with suppress(sealane.LeaseLost):
                # If the node is gone before it has said that it knows, the order may come again.
                await message.ack(confirm=True)
            if len(billed) == ORDERS:
                break
    return billed


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory, NodeProcess(Path(directory) / "data") as node:
        halfway = asyncio.Event()
        producing = asyncio.create_task(produce(node.url, halfway))
        consuming = asyncio.create_task(consume(node.url))
        await halfway.wait()
        await asyncio.to_thread(node.kill)  # As the power would.
        await asyncio.to_thread(node.start)
        await producing
        billed = await consuming
        print(f"{len(billed)} of {ORDERS} orders were billed, through a crash of the node")


asyncio.run(main())
