"""Hello: publish a message, consume it, acknowledge it.

The broker runs inside this process. With a path it keeps everything there, sealed; without one, in memory.
"""

from __future__ import annotations

import asyncio
import tempfile

import sealane


async def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        async with sealane.embedded(directory) as lane:
            receipt = await lane.publish("greetings", b"hello", key=b"en", headers={"from": "me"})
            print(f"durable at offset {receipt.offset} of partition {receipt.partition}")

        # The block has ended and the broker with it; the message is still there.
        async with sealane.embedded(directory) as lane:
            async for message in lane.consume("greetings", subscription="reader"):
                print(f"received {message.payload.decode()!r}, attempt {message.attempt}, headers {message.headers}")
                await message.ack(confirm=True)
                break


asyncio.run(main())
