"""What an operator of a simulated broker does: seek, and make and delete topics."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from sealane.errors import AlreadyExists, StorageFull, SubscriptionNotFound, TopicNotFound
from sealane.node.starts import Start
from tests.simulation.history import Redriven, Sought
from tests.simulation.scenario import Step

if TYPE_CHECKING:
    from tests.simulation.broker_subject import Broker


class Operating:
    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def seek(self, step: Step) -> None:
        args, broker = step.args, self._broker
        topic = broker.node.topic(args["topic"])
        start: Start = args["to"]
        if args["to"] == "offset":
            start = {owner.key.partition: args["offset"] for owner in topic.owners}
        # Noted before and after: it takes effect somewhere in between, or perhaps not at all.
        sought = Sought(broker.topic_name(topic), args["subscription"], backwards=args["to"] == "earliest")
        broker.record(sought)
        with suppress(StorageFull, SubscriptionNotFound):
            await broker.lane.seek(args["topic"], args["subscription"], start)
        broker.record(sought)

    async def redrive(self, step: Step) -> None:
        await redrive(self._broker, step.args["topic"], step.args["subscription"], step.args["messages_max"])

    async def create(self, step: Step) -> None:
        try:
            await self._broker.lane.create_topic(step.args["topic"])
        except (AlreadyExists, StorageFull):
            return

    async def delete(self, step: Step) -> None:
        try:
            await self._broker.lane.delete_topic(step.args["topic"])
        except TopicNotFound:
            return


async def redrive(broker: Broker, topic: str, subscription: str, messages_max: int | None = None) -> None:
    """Send dead letters back, if there are any."""
    name = broker.topic_name(broker.node.topic(topic))
    broker.record(Redriven(name, subscription))
    try:
        await broker.lane.redrive(topic, subscription, messages_max=messages_max)
    except (TopicNotFound, StorageFull):
        return
