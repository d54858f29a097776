"""One webhook at work: it takes messages, sends them, and answers for them by what the receiver said.

Nothing is taken while nothing may be sent: a webhook that is paused, broken or whose breaker is open is not attached to
its subscription at all, so its messages stay ready, and no attempt is counted for them.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence

import msgspec

from sealane.errors import SealaneError, WebhookRefused
from sealane.log import get_log
from sealane.node.attachment import REASON_CHARS_MAX, Attachment
from sealane.node.audit_folding import Origin
from sealane.node.deliveries import Delivery, offsets_of
from sealane.node.message_json import deliveries_json
from sealane.node.node import Node
from sealane.node.pulling.pull import config_of
from sealane.node.session import Session
from sealane.node.supervision import Backoff
from sealane.node.webhooks.live import LastRequest, Live
from sealane.node.webhooks.records import Webhook
from sealane.node.webhooks.signing import request_id, signature
from sealane.node.webhooks.verdicts import Verdict, failed, judge
from sealane.push.intake import Intake
from sealane.push.sender import NoAnswer, NoAnswerInTime, Sender
from sealane.security.principals import Principal

log = get_log("sealane.push")

LOOK_SECONDS = 5.0
"""How often it is looked whether what keeps a webhook from being pushed, such as a missing grant, is gone."""
LEASE_SECONDS_SPARE = 10.0
"""Messages are leased for so much longer than the receiver's time: it is answered for them first."""
ORIGIN = Origin("", "webhook")
"""Where the audit log says that such a session came in."""


class Push:
    """Runs until its webhook is removed, or `stop` is called."""

    def __init__(self, node: Node, name: str, sender: Sender) -> None:
        self._node = node
        self._webhooks = node.webhooks
        self._name = name
        self._sender = sender
        self._stirred = asyncio.Event()
        self._stopping = False
        self._pauses = Backoff()
        self._obstacle: str | None = None
        """What was last said to be in the way."""

    def stir(self) -> None:
        """The webhook was changed: look again."""
        self._stirred.set()

    def stop(self) -> None:
        """End after the request that is under way."""
        self._stopping = True
        self._stirred.set()

    async def run(self) -> None:
        while not self._stopping and (webhook := self._webhooks.find(self._name)) is not None:
            self._stirred.clear()
            live = self._live(webhook)
            seconds = self._rest_seconds(webhook, live)
            if seconds:
                await self._rest(seconds)
                continue
            try:
                await self._push_while_possible(webhook, live)
            except (SealaneError, OSError) as error:
                log.warning("a webhook waits", **_fields(webhook), reason=str(error))
                await self._rest(self._pauses.next_seconds(self._now()))

    def _live(self, webhook: Webhook) -> Live:
        live = self._webhooks.live.get(self._name)
        if live is None or live.since_us != webhook.since_us:
            live = self._webhooks.live[self._name] = Live.anew(self._webhooks.settings, webhook.since_us)
        return live

    def _rest_seconds(self, webhook: Webhook, live: Live) -> float:
        """How long there is nothing to do; 0: it may go on."""
        if webhook.wanted != "on":
            return math.inf
        obstacle, before = self._webhooks.obstacle(webhook), self._obstacle
        self._obstacle = obstacle
        if obstacle is not None:
            if obstacle != before:
                log.warning("a webhook is not pushed", **_fields(webhook), reason=obstacle)
            return LOOK_SECONDS
        return live.breaker.wait_seconds(self._now())

    async def _rest(self, seconds: float) -> None:
        """Until something stirs, at most for so long."""
        try:
            async with asyncio.timeout(None if seconds == math.inf else seconds):
                await self._stirred.wait()
        except TimeoutError:
            pass

    def _now(self) -> float:
        return self._node.measures.now()

    # --- while it is attached -----------------------------------------------------------------------------------------

    async def _push_while_possible(self, webhook: Webhook, live: Live) -> None:
        principal = self._webhooks.principal(webhook.owner)
        config = config_of(self._node.topics.get(webhook.topic), webhook.subscription)
        intake = Intake(f"webhook-{self._node.surroundings.entropy(8).hex()}", self._stirred)
        session = Session(self._node, principal, ORIGIN)
        attachment = await session.attach(webhook.topic, webhook.subscription, config, "earliest", intake.consumer)
        crashed = False
        try:
            while self._goes_on(webhook, live, principal, intake):
                self._stirred.clear()
                # One message tells as well whether the receiver is there again, and fewer attempts are lost by it.
                count = webhook.messages_max if live.breaker.state(self._now()) == "closed" else 1
                deliveries = await self._held(webhook, attachment, await intake.take(attachment, count))
                # It may have waited for them for days: what was true then need not be now.
                if deliveries and self._goes_on(webhook, live, principal, intake):
                    await self._push(webhook, live, attachment, deliveries)
        except (SealaneError, OSError, asyncio.CancelledError):
            raise
        except BaseException:
            # The messages themselves may be what it fails at: then an attempt counts, so that it ends some day.
            crashed = True
            raise
        finally:
            await attachment.end(node_stops=not crashed)

    def _goes_on(self, webhook: Webhook, live: Live, principal: Principal, intake: Intake) -> bool:
        """Whether everything is as it was when it was attached, and a request may be sent."""
        return (
            not self._stopping
            and intake.error is None
            and self._webhooks.find(self._name) is webhook
            and live.breaker.wait_seconds(self._now()) == 0
            and self._webhooks.obstacle(webhook) is None
            and self._webhooks.principal(webhook.owner) == principal
        )

    async def _held(self, webhook: Webhook, attachment: Attachment, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Those that are whole and leased for long enough; what was revoked in part goes back, and comes again."""
        held = []
        needed_us = round((webhook.timeout_seconds + LEASE_SECONDS_SPARE) * 1e6)
        for delivery in deliveries:
            _, subscription = attachment.find(delivery.partition)
            leased = subscription.leases.held(delivery.lease, None)
            if any(offsets_of(part) - leased for part in delivery.parts):
                attachment.release(delivery.partition, delivery.lease)
                continue
            if delivery.deadline_us < self._node.surroundings.clock() + needed_us:
                await attachment.extend(delivery.partition, delivery.lease, needed_us / 1e6)
            held.append(delivery)
        return held

    async def _push(self, webhook: Webhook, live: Live, attachment: Attachment, deliveries: Sequence[Delivery]) -> None:
        messages = deliveries_json(deliveries)
        began = self._now()
        verdict = await self._send(webhook, messages)
        measures = self._node.measures
        measures.webhook_seconds.observe(self._now() - began)
        measures.webhook_requests[verdict.outcome] += 1
        live.last = LastRequest(self._node.surroundings.clock(), len(messages), verdict)
        if verdict.does == "ack":
            live.breaker.succeeded()
        else:
            self._failed(webhook, live, verdict)
        counted = {"ack": "acked", "nack": "nacked", "stop": "returned"}[verdict.does]
        measures.webhook_messages[counted] += len(messages)
        settled = await asyncio.gather(
            *(_settle(attachment, delivery, verdict) for delivery in deliveries), return_exceptions=True
        )
        for problem in settled:
            if isinstance(problem, SealaneError):
                # A lease that was lost, or a subscription that was deleted meanwhile: the messages may come again.
                log.info("messages of a webhook were not settled", **_fields(webhook), reason=str(problem))
            elif problem is not None:
                raise problem
        if verdict.does == "stop":
            await self._webhooks.stop(webhook, verdict.reason)

    def _failed(self, webhook: Webhook, live: Live, verdict: Verdict) -> None:
        was_closed = live.breaker.state(self._now()) == "closed"
        live.breaker.failed(self._now(), verdict.delay_seconds)
        if was_closed and live.breaker.state(self._now()) != "closed":
            seconds = round(live.breaker.wait_seconds(self._now()), 3)
            log.warning("the breaker of a webhook opens", **_fields(webhook), reason=verdict.reason, seconds=seconds)
        else:
            log.info("a push failed", **_fields(webhook), reason=verdict.reason)

    async def _send(self, webhook: Webhook, messages: Sequence[dict[str, object]]) -> Verdict:
        content = {"topic": webhook.topic, "subscription": webhook.subscription, "messages": messages}
        body = msgspec.json.encode(content)
        identity = request_id([str(message["id"]) for message in messages])
        now_us = self._node.surroundings.clock()
        timestamp = now_us // 1_000_000
        headers = {
            "webhook-id": identity,
            "webhook-timestamp": str(timestamp),
            "webhook-signature": signature(webhook.signing(now_us), identity, timestamp, body),
        }
        try:
            endpoint = self._webhooks.endpoint(webhook.url)
            answer = await self._sender.post(endpoint, headers, body, webhook.timeout_seconds)
        except WebhookRefused as error:
            return failed("refused", str(error))
        except NoAnswerInTime as error:
            return failed("timeout", str(error))
        except NoAnswer as error:
            return failed("unreachable", str(error))
        return judge(answer, now_us / 1e6)


async def _settle(attachment: Attachment, delivery: Delivery, verdict: Verdict) -> None:
    partition, lease = delivery.partition, delivery.lease
    if verdict.does == "ack":
        await attachment.ack(partition, lease)
    elif verdict.does == "nack":
        reason = verdict.reason[:REASON_CHARS_MAX]
        await attachment.nack(partition, lease, delay=verdict.delay_seconds, reason=reason)
    else:
        attachment.release(partition, lease)


def _fields(webhook: Webhook) -> dict[str, str]:
    """Of the URL nothing: it may hold a secret of the receiver's."""
    return {"topic": webhook.topic, "subscription": webhook.subscription}
