"""Certificates are exchanged while messages flow: nobody is cut off, and nothing is lost."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path

import sealane
from sealane.client.profiles import Profile
from tests.integration.native.conftest import eventually
from tests.secure_node import SecureNode, secure_node

MESSAGES = 2_000
ROTATIONS = 5
DEADLINE_SECONDS = 60


async def profile_of(running: SecureNode, name: str) -> Profile:
    issued = await running.issue(name, days=30)
    url = f"sealanes://{running.native.address}"
    return Profile(url, issued.ca, issued.certificate, issued.key)


async def shown_by(running: SecureNode) -> bytes:
    """The certificate that a new connection sees."""
    host, _, port = running.native.address.rpartition(":")
    _, writer = await asyncio.open_connection(host, int(port), ssl=running.context())
    seen: ssl.SSLObject = writer.get_extra_info("ssl_object")
    certificate = seen.getpeercert(binary_form=True)
    writer.close()
    await writer.wait_closed()
    assert certificate is not None
    return certificate


async def test_a_certificate_is_renewed_while_a_producer_and_a_consumer_keep_going(tmp_path: Path) -> None:
    sent, received = [], []

    async def produce(lane: sealane.Lane) -> None:
        async with lane.producer("orders") as producer:
            for number in range(MESSAGES):
                sent.append(b"%d" % number)
                await producer.send(sent[-1])
                if number % 20 == 0:
                    await producer.flush()

    async def consume(lane: sealane.Lane) -> None:
        async for message in lane.consume("orders", subscription="billing"):
            received.append(message.payload)
            await message.ack()
            if len(received) == MESSAGES:
                return

    async with (
        secure_node(tmp_path) as running,
        asyncio.timeout(DEADLINE_SECONDS),
        sealane.connect(profile=await profile_of(running, "producer")) as one,
        sealane.connect(profile=await profile_of(running, "consumer")) as other,
    ):
        flowing = asyncio.gather(produce(one), consume(other))
        certificates = {await shown_by(running)}
        for turn in range(1, ROTATIONS + 1):
            share = turn * MESSAGES // (ROTATIONS + 2)
            await eventually(lambda share=share: len(received) >= share)  # type: ignore[misc]
            (tmp_path / "data" / "identity" / "server.crt").unlink()
            await running.own.ensure()
            certificates.add(await shown_by(running))
        await flowing

    assert received == sent
    assert len(certificates) == ROTATIONS + 1
