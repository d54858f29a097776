"""All webhooks of a node at work: a supervised task for each, from the start of the node to its end."""

from __future__ import annotations

import asyncio

from sealane.log import get_log
from sealane.node.node import Node
from sealane.push.network import Resolve, SystemResolver
from sealane.push.push import Push
from sealane.push.sender import Sender
from sealane.push.trust import receivers_context

log = get_log("sealane.push")


class Pusher:
    """`start`, then `drain`, then `close`, as a door."""

    def __init__(self, node: Node, *, plain_http: bool = False, resolve: Resolve | None = None) -> None:
        """`plain_http`: whether http:// to this machine itself is allowed. `resolve` instead of asking the system.
        Raises `InvalidSettings`.
        """
        self._node = node
        node.webhooks.plain_http = plain_http
        self._resolver = SystemResolver()
        trust = receivers_context(node.webhooks.settings.ca)
        self._sender = Sender(node.webhooks.hosts, resolve or self._resolver, trust)
        self._running: dict[str, tuple[Push, asyncio.Task[None]]] = {}
        self._stopping = False

    def start(self) -> None:
        self._node.webhooks.changed.append(self._changed)
        for webhook in self._node.webhooks.all():
            self._run(webhook.name)
        log.info("webhooks are pushed", webhooks=len(self._running))

    def stop(self) -> None:
        """Begin no more requests."""
        self._stopping = True
        for push, _ in self._running.values():
            push.stop()

    async def drain(self, seconds: float) -> None:
        """Stop, and let requests under way come to their end within this time."""
        self.stop()
        await self._wait(seconds)

    async def close(self) -> None:
        """Cut off what is left: its messages go back, and no attempt is counted. Idempotent."""
        self.stop()
        for _, task in self._running.values():
            task.cancel()
        await self._wait(None)
        if self._changed in self._node.webhooks.changed:
            self._node.webhooks.changed.remove(self._changed)
        self._node.webhooks.live.clear()
        await self._sender.close()
        self._resolver.close()

    async def _wait(self, seconds: float | None) -> None:
        tasks = [task for _, task in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=seconds)

    def _changed(self, name: str) -> None:
        found = self._running.get(name)
        if found is not None:
            found[0].stir()
        else:
            self._run(name)

    def _run(self, name: str) -> None:
        webhook = self._node.webhooks.find(name)
        if webhook is None or self._stopping:
            return
        push = Push(self._node, name, self._sender)
        fields = {"topic": webhook.topic, "subscription": webhook.subscription}
        task = self._node.supervisor.keep("webhook", push.run, **fields)
        self._running[name] = push, task
        task.add_done_callback(lambda done: self._ended(name))

    def _ended(self, name: str) -> None:
        del self._running[name]
        self._node.webhooks.live.pop(name, None)
        self._run(name)  # Another one may have taken its name meanwhile.
