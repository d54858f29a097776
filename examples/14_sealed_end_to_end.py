"""Sealed end to end: the sender seals, the recipients open, and the broker between them sees no payload.

A recipient makes a key pair and registers the public half under its name. Senders seal by that name; who does not want
to trust the node with it pins the key's fingerprint. Keys and headers of messages stay readable, for routing and
filters.
"""

from __future__ import annotations

import asyncio

import sealane


async def main() -> None:
    billing, audit, stranger = (sealane.PrivateKey.generate() for _ in range(3))

    async with sealane.embedded() as lane:
        await lane.register_key(billing.public, "billing")
        await lane.register_key(audit.public, "audit")

        headers = {"region": "eu"}
        await lane.publish("orders", b"card 4111 1111", headers=headers, seal_for=["billing", "audit"])
        await lane.publish("orders", b"card 4222 2222", seal_for={"billing": billing.public.fingerprint})

        async for message in lane.consume("orders", subscription="operators"):
            print(f"stored: {b'4111' in message.payload = }, {message.sealed = }, headers {message.headers}")
            break

        async for batch in lane.consume_batches("orders", subscription="billing", keys=billing):
            print("billing reads:", ", ".join(payload.decode() for payload in batch.payloads()))
            await batch.ack()
            break

        async for batch in lane.consume_batches("orders", subscription="audit", keys=audit):
            readable, foreign = batch.openable(), batch.unopened()
            print(f"audit reads: {readable.payloads()[0].decode()}, and leaves {len(foreign)} that is not for it")
            await readable.ack()
            await foreign.nack(reason="not sealed for audit")
            break

        async for message in lane.consume("orders", subscription="stranger", keys=stranger):
            try:
                print(message.payload)
            except sealane.CannotOpen as error:
                print(f"a stranger: {error.reason}")
            break

        # Someone else's key comes up under the name of audit, because the node was taken over, say.
        await lane.administer("directory.remove", name="audit")
        await lane.register_key(stranger.public, "audit")
        try:
            await lane.publish("orders", b"card 4333 3333", seal_for={"audit": audit.public.fingerprint})
        except sealane.KeyPinMismatch as error:
            print(f"pinned: {error.recipient} has another key now, nothing was published")


asyncio.run(main())
