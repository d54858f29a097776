"""Sealed end to end on a node as users have it: with TLS, accounts, grants, signed publishes and sealing at rest."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

import sealane
from sealane.testing.node_process import NodeProcess

DEADLINE_SECONDS = 60.0


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess.secure(tmp_path / "data") as running:
        yield running


async def test_a_sender_and_a_recipient_that_trust_each_other_and_not_the_node(node: NodeProcess) -> None:
    private, other = sealane.PrivateKey.generate(), sealane.PrivateKey.generate()
    async with asyncio.timeout(DEADLINE_SECONDS), sealane.connect(node.url, profile=node.profile) as admin:
        keys = {name: (await admin.administer("key.create", account=name))["key"] for name in ("shop", "billing")}
        ca = node.data / "identity" / "ca.crt"
        async with (
            sealane.connect(node.url, ca=ca, key=keys["shop"]) as shop,
            sealane.connect(node.url, ca=ca, key=keys["billing"]) as billing,
        ):
            assert (await billing.register_key(private.public))["name"] == "billing"
            with pytest.raises(sealane.Forbidden):
                await shop.register_key(other.public, "billing")
            await shop.publish("orders", b"card 4111", seal_for={"billing": private.public.fingerprint})
            await shop.publish_many("orders", [b"card 4222"], seal_for="billing")
            async for batch in billing.consume_batches("orders", "billing", keys=private, messages_max=2):
                assert batch.payloads()[0] == b"card 4111"
                await batch.ack(confirm=True)
                break
            async for message in admin.consume("orders", "curious", keys=other):
                with pytest.raises(sealane.CannotOpen):
                    _ = message.payload
                break
