"""`schema.*`: what payloads of a topic look like.

Changing that takes `manage` on the topic; whoever may publish, consume or manage it may read it.
"""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import InvalidArgument
from sealane.message import check_name, split_topic
from sealane.node.administration.table import Command, Commands, Progress
from sealane.node.schemas.records import SchemaVersion, TopicSchemas
from sealane.node.schemas.registry import Schemas
from sealane.schemas import Definition, Format, Mode
from sealane.security.principals import Action

if TYPE_CHECKING:
    from sealane.node.session import Session

_READING: tuple[Action, ...] = ("publish", "consume", "manage")


class OneSchema(msgspec.Struct):
    topic: str
    schema: str
    """Its text; of Arrow, an IPC schema message in base64."""
    format: Format = "json"
    message: str | None = None
    """Of Protobuf, where the text has several messages: the one that payloads are."""
    compatibility: Mode | None = None
    """None: as it is, `backward` of a topic that has no schema yet."""

    @property
    def definition(self) -> Definition:
        return Definition(self.format, self.schema, self.message)


class RegisterSchema(OneSchema):
    validate: bool | None = None
    """Whether what is published is checked; None: as it is, yes of a topic that has no schema yet."""


class ListSchemas(msgspec.Struct):
    topic: str | None = None
    """None: the latest of every topic; else all versions of this one."""


class ShowSchema(msgspec.Struct):
    topic: str | None = None
    """None: that of the id."""
    version: int | None = None
    id: int | None = None


class ConfigureSchemas(msgspec.Struct):
    topic: str
    compatibility: Mode | None = None
    validate: bool | None = None


class RemoveSchema(msgspec.Struct):
    topic: str
    version: int | None = None
    """None: all of them."""


async def _register(session: Session, asked: RegisterSchema, progress: Progress) -> dict[str, Any]:
    """`new` tells whether it was not there before."""
    name = session.allow("manage", asked.topic)
    known = _schemas(session).find(name)
    details = {"format": asked.format, **_wishes(asked.compatibility, asked.validate)}
    schemas, version = await session.recorded("schema.register", name, _registered(session, name, asked), details)
    is_new = known is None or version not in known.versions
    return {**_told(name, schemas, version), "new": is_new}


async def _registered(session: Session, name: str, asked: RegisterSchema) -> tuple[TopicSchemas, SchemaVersion]:
    wanted = await _schemas(session).read(asked.definition)  # First: nothing is made for what is no schema.
    with session.noting_new(name):
        topic = await session.node.ensure_topic(name)
    return await _schemas(session).register(
        topic,
        wanted,
        by=session.principal.name,
        compatibility=asked.compatibility,
        validate=asked.validate,
    )


async def _check(session: Session, asked: OneSchema, progress: Progress) -> dict[str, Any]:
    """Whether it could be registered: `problems` says what is in its way, `version` which one it is already."""
    name = _readable(session, asked.topic)
    for kind, part in zip(("domain", "topic"), split_topic(name), strict=True):
        check_name(kind, part, session.limits)
    problems, version = await _schemas(session).problems(name, asked.definition, asked.compatibility)
    return {"topic": name, "compatible": not problems, "problems": problems, "version": version}


async def _list(session: Session, asked: ListSchemas, progress: Progress) -> list[dict[str, Any]]:
    """Without the texts. Of topics that one may not see, nothing is told."""
    if asked.topic is not None:
        name = _readable(session, asked.topic)
        schemas = _schemas(session).get(name)
        return [_told(name, schemas, version) for version in schemas.versions]
    return [
        {**_told(name, schemas, schemas.latest), "versions": len(schemas.versions)}
        for name, schemas in _schemas(session).all()
        if any(session.may(action, name) for action in _READING)
    ]


async def _show(session: Session, asked: ShowSchema, progress: Progress) -> dict[str, Any]:
    """The latest, or the one of that version or id, with its text."""
    if asked.topic is not None:
        name = _readable(session, asked.topic)
    elif asked.id is not None:
        session.allow_member()
        name = _readable(session, _schemas(session).topic_of(asked.id))
    else:
        raise InvalidArgument("topic", "name the topic, or the id of the schema")
    version = _schemas(session).version(name, version=asked.version, id=asked.id)
    compiled = version.definition.compiled
    return {
        **_told(name, _schemas(session).get(name), version),
        "schema": version.definition.text,
        "compiled": None if compiled is None else base64.b64encode(compiled).decode(),
    }


async def _configure(session: Session, asked: ConfigureSchemas, progress: Progress) -> dict[str, Any]:
    name = session.allow("manage", asked.topic)
    if asked.compatibility is None and asked.validate is None:
        raise InvalidArgument("compatibility", "nothing to change: give compatibility, validate, or both")
    work = _schemas(session).configure(session.node.topic(name), asked.compatibility, asked.validate)
    details = _wishes(asked.compatibility, asked.validate)
    schemas = await session.recorded("schema.configure", name, work, details)
    return _told(name, schemas, schemas.latest)


async def _remove(session: Session, asked: RemoveSchema, progress: Progress) -> dict[str, Any]:
    name = session.allow("manage", asked.topic)
    work = _schemas(session).remove(session.node.topic(name), asked.version)
    details = {} if asked.version is None else {"version": asked.version}
    gone = await session.recorded("schema.remove", name, work, details)
    return {"topic": name, "removed": [version.version for version in gone]}


def _readable(session: Session, topic: str) -> str:
    """The full name of a topic to which the principal may do anything that needs its schema."""
    name = "/".join(split_topic(topic, session.principal.domain))
    if any(session.may(action, name) for action in _READING):
        return name
    return session.allow("consume", topic)


def _schemas(session: Session) -> Schemas:
    return session.node.schemas


def _told(topic: str, schemas: TopicSchemas, version: SchemaVersion) -> dict[str, Any]:
    return {
        "topic": topic,
        "version": version.version,
        "id": version.id,
        "format": version.definition.format,
        "message": version.definition.message,
        "compatibility": schemas.compatibility,
        "validate": schemas.validate,
        "registered_us": version.registered_us,
        "by": version.by,
    }


def _wishes(compatibility: Mode | None, validate: bool | None) -> dict[str, str | int]:
    given = {"compatibility": compatibility, "validate": validate}
    return {name: value for name, value in given.items() if value is not None}


COMMANDS_OF_SCHEMAS: Commands = {
    "schema.register": Command(RegisterSchema, _register, "notes"),
    "schema.configure": Command(ConfigureSchemas, _configure, "notes"),
    "schema.remove": Command(RemoveSchema, _remove, "notes"),
    # Every program that seals what it publishes asks, again and again, for what all of a topic may know: that is no
    # entry.
    "schema.check": Command(OneSchema, _check, "notes"),
    "schema.list": Command(ListSchemas, _list, "notes"),
    "schema.show": Command(ShowSchema, _show, "notes"),
}
