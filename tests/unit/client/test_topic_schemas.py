"""What a client knows of topics' schemas: asked for once, again when it is old or was refused, and kept while it is the
same.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from sealane.client import topic_schemas
from sealane.client.topic_schemas import TopicSchemas
from sealane.errors import SchemaMismatch, SchemaNotFound, Unavailable
from sealane.message import Limits, Stamp, from_payloads


class Node:
    """What a node would answer."""

    def __init__(self) -> None:
        self.asked = 0
        self.answer: Any = None

    def has(self, id: int, schema: str = '{"type": "integer"}', *, validate: bool = True) -> None:
        told = {"topic": "default/t", "version": 1, "id": id, "format": "json", "message": None, "compiled": None}
        self.answer = {**told, "schema": schema, "validate": validate}

    async def administer(self, command: str, *, topic: str) -> Any:
        assert (command, topic) == ("schema.show", "t")
        self.asked += 1
        await asyncio.sleep(0)
        if self.answer is None:
            raise SchemaNotFound(topic)
        return self.answer


def a_batch(*payloads: bytes) -> Any:
    return from_payloads(list(payloads), Stamp(1, bytes(16)), limits=Limits())


async def test_many_who_ask_at_the_same_time_are_one_question() -> None:
    node = Node()
    node.has(7)
    schemas = TopicSchemas(node.administer)
    found = await asyncio.gather(*(schemas.of("t") for _ in range(20)))
    assert (node.asked, len(set(map(id, found)))) == (1, 1)


async def test_what_fits_gets_the_id_and_what_does_not_is_told() -> None:
    node = Node()
    node.has(7)
    schema = await TopicSchemas(node.administer).of("t")
    assert schema is not None
    assert schema.checked(a_batch(b"1", b"2")).meta.schema_id == 7
    with pytest.raises(SchemaMismatch) as refused:
        schema.checked(a_batch(b"1", b'"x"'))
    assert (refused.value.topic, refused.value.version, refused.value.index) == ("default/t", 1, 1)


async def test_it_is_asked_for_again_when_it_is_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_schemas, "SCHEMA_SECONDS", 0.0)
    node = Node()
    node.has(7)
    schemas = TopicSchemas(node.administer)
    first, same = await schemas.of("t"), await schemas.of("t")
    assert (node.asked, first is same) == (2, True)
    node.has(8)
    assert await schemas.of("t") is not first


async def test_after_a_refusal_it_is_known_whether_another_one_holds() -> None:
    node = Node()
    schemas = TopicSchemas(node.administer)
    assert await schemas.of("t") is None
    assert not await schemas.have_changed("t")
    node.has(7)
    assert await schemas.of("t") is None  # Until someone asks again.
    assert await schemas.have_changed("t")
    assert not await schemas.have_changed("t")
    node.has(7, validate=False)
    assert await schemas.have_changed("t")
    node.has(8)
    schemas.forget("t")
    assert await schemas.of("t") is not None


async def test_an_answer_that_is_none_is_an_error() -> None:
    node = Node()
    node.answer = {"validate": True}
    with pytest.raises(Unavailable):
        await TopicSchemas(node.administer).of("t")
