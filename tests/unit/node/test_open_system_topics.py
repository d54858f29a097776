"""Topics of the system that jobs write, and nobody else."""

from __future__ import annotations

import pytest

import sealane
from sealane.client.embedded import InProcessBroker
from sealane.client.lane import Lane
from sealane.message import OPEN_SYSTEM_TOPICS
from sealane.security.principals import Principal
from tests.scenarios.broker import take_payloads
from tests.unit.node.running_node import running_node


@pytest.mark.parametrize("topic", sorted(OPEN_SYSTEM_TOPICS))
async def test_it_is_made_when_it_is_used_and_is_not_listed(topic: str) -> None:
    async with running_node() as running:
        await running.lane.publish(topic, b"told")
        assert await take_payloads(running.lane.consume(topic, "people"), 1) == [b"told"]
        assert await running.lane.topics() == []


async def test_whoever_publishes_to_one_needs_a_grant_that_names_it() -> None:
    async with running_node() as running, Lane(InProcessBroker(running.node, Principal("job"))) as job:
        await running.lane.administer("grant.add", subject="job", action="publish", pattern="*/*")
        with pytest.raises(sealane.Forbidden):
            await job.publish("_system/alerts", b"a")
        await running.lane.administer("grant.add", subject="job", action="publish", pattern="_system/alerts")
        await job.publish("_system/alerts", b"a")
        with pytest.raises(sealane.Forbidden):
            await job.publish("_system/routes", b"a")


async def test_every_other_name_of_the_system_is_for_reading() -> None:
    async with running_node() as running:
        for topic in ("_system/other", "_system/_alerts", "_alerts", "default/_alerts"):
            with pytest.raises(sealane.InvalidName, match="belong to the system"):
                await running.lane.publish(topic, b"a")
