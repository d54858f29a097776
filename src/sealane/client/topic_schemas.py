"""The schemas of topics, for what is sealed before it leaves: the node cannot check that, so the client does.

What the node says of a topic is believed for a few minutes. Older versions stay good, so being late harms nobody; and
when the node refuses something that was checked by them, they are asked for again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from sealane.errors import SchemaMismatch, SchemaNotFound, Unavailable
from sealane.message import Batch
from sealane.node.locks import Locks
from sealane.schemas import Schema, definition_shown, open_schema

SCHEMA_SECONDS = 120.0
"""How long a schema that was looked up is used."""
_TOPICS_KEPT = 1_000
"""Topics whose schemas a lane remembers; beyond it, all are looked up again."""


class TopicSchema:
    """The latest version of a topic's schema, as the node has told it."""

    def __init__(self, topic: str, version: int, id: int, schema: Schema) -> None:
        self.topic = topic
        self.version = version
        self.id = id
        self._schema = schema

    def checked(self, batch: Batch) -> Batch:
        """The batch, in the clear, with the id of its schema. Raises `SchemaMismatch` if a payload does not fit."""
        misfit = self._schema.check(batch.payloads())
        if misfit is not None:
            raise SchemaMismatch(self.topic, self.version, misfit.index, misfit.path, misfit.problem)
        return batch.with_meta(msgspec.structs.replace(batch.meta, schema_id=self.id))


class TopicSchemas:
    """Those of a lane."""

    def __init__(self, administer: Callable[..., Awaitable[Any]]) -> None:
        self._administer = administer
        self._known: dict[str, tuple[TopicSchema | None, float]] = {}
        self._lock = Locks()

    async def of(self, topic: str) -> TopicSchema | None:
        """What payloads of the topic have to fit; None if nothing is checked. The same object while it is the same.

        Raises `MissingExtra` if what reads it is not installed.
        """
        known = self._known.get(topic)
        if known is not None and asyncio.get_running_loop().time() < known[1]:
            return known[0]
        async with self._lock(topic):
            known = self._known.get(topic)
            if known is None or asyncio.get_running_loop().time() >= known[1]:
                known = await self._look_up(topic, known[0] if known is not None else None)
            return known[0]

    def forget(self, topic: str) -> None:
        """What is known of the topic may be wrong: ask again when it is needed."""
        self._known.pop(topic, None)

    async def have_changed(self, topic: str) -> bool:
        """Ask again, since the node has refused something: whether another schema holds than was thought."""
        before = self._known.get(topic, (None, 0.0))[0]
        self._known[topic] = before, 0.0  # Its time is over.
        return await self.of(topic) is not before

    async def _look_up(self, topic: str, before: TopicSchema | None) -> tuple[TopicSchema | None, float]:
        try:
            told = await self._administer("schema.show", topic=topic)
        except SchemaNotFound:
            found = None
        else:
            found = _read(told, before)
        if len(self._known) >= _TOPICS_KEPT:
            self._known.clear()
        self._known[topic] = known = found, asyncio.get_running_loop().time() + SCHEMA_SECONDS
        return known


def _read(told: Any, before: TopicSchema | None) -> TopicSchema | None:
    try:
        if not told["validate"]:
            return None
        if before is not None and before.id == told["id"]:
            return before
        return TopicSchema(told["topic"], told["version"], told["id"], open_schema(definition_shown(told)))
    except (LookupError, TypeError, ValueError):
        raise Unavailable("the node answered a question for a schema with something else") from None
