"""All schemas of a node: registered, compared, configured, removed, and forgotten with their topics."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple, TypeVar

import msgspec

from sealane.errors import IncompatibleSchema, InvalidArgument, SchemaNotFound
from sealane.log import get_log
from sealane.node.schemas.checking import TopicCheck
from sealane.node.schemas.compiling import Compiler
from sealane.node.schemas.records import LastId, SchemaVersion, TopicSchemas
from sealane.node.topics import Topic
from sealane.schemas import Definition, Mode, Schema, incompatibilities, open_schema
from sealane.schemas.protobuf.protobuf_schema import ProtobufSchema
from sealane.security.records import Vault

log = get_log("sealane.node")

T = TypeVar("T")

VERSIONS_MAX = 100
"""Versions of one topic: two a week for a year. Those that nothing refers to any more can be removed."""
SCHEMAS_MAX = 10_000
"""Versions of all topics of a node together."""
SCHEMAS_BYTES_MAX = 64 << 20
"""What all of them together may take: they are held in memory."""
COMPATIBILITY_DEFAULT: Mode = "backward"

_LAST = "last"


class Readied(NamedTuple):
    """A schema that can be registered: what is kept of it, and it."""

    definition: Definition
    schema: Schema


class Schemas:
    """In memory; changes are durable on return."""

    def __init__(self, vault: Vault, topics: Mapping[str, Topic]) -> None:
        self._records = vault.records("schema", TopicSchemas)
        self._last_id = vault.records("schema-id", LastId)
        self._clock = vault.clock
        self._topics = topics
        self._changing = asyncio.Lock()
        self._compiler = Compiler()
        self._under_way: set[asyncio.Task[Any]] = set()

    async def load(self) -> None:
        """Read what the engine keeps; topics are checked from here on."""
        await self._records.load()
        await self._last_id.load()
        await self.forget_orphans()
        for name, schemas in self._records:
            self._topics[name].schema = TopicCheck(name, schemas)

    async def close(self) -> None:
        """Wait for changes that are under way."""
        if self._under_way:
            await asyncio.wait(list(self._under_way))

    async def forget_orphans(self) -> None:
        """Called when a topic was deleted: its schemas go too."""
        async with self._changing:
            for name, schemas in list(self._records):
                topic = self._topics.get(name)
                if topic is None or topic.record.incarnation != schemas.incarnation:
                    await self._records.remove(name)

    # --- looking ------------------------------------------------------------------------------------------------------

    def all(self) -> list[tuple[str, TopicSchemas]]:
        """By topic, in order."""
        return [(name, schemas) for name, schemas in self._records if self.find(name) is schemas]

    def find(self, topic: str) -> TopicSchemas | None:
        """What a topic has, by its full name."""
        schemas, running = self._records.get(topic), self._topics.get(topic)
        return schemas if schemas and running and running.record.incarnation == schemas.incarnation else None

    def get(self, topic: str) -> TopicSchemas:
        """Raises `SchemaNotFound`."""
        found = self.find(topic)
        if found is None:
            raise SchemaNotFound(topic, "the topic has none: `sealane schema register` gives it one")
        return found

    def version(self, topic: str, *, version: int | None = None, id: int | None = None) -> SchemaVersion:
        """The latest, or the one of that number or id. Raises `SchemaNotFound`."""
        schemas = self.get(topic)
        found = schemas.find(version=version, id=id)
        if found is None:
            named = f"version {version}" if version is not None else f"id {id}"
            known = ", ".join(f"{each.version} (id {each.id})" for each in schemas.versions[-10:])
            raise SchemaNotFound(f"{topic} {named}", f"it has {known}")
        return found

    def topic_of(self, id: int) -> str:
        """Whose schema has this id. Raises `SchemaNotFound`."""
        for name, schemas in self.all():
            if schemas.find(id=id) is not None:
                return name
        raise SchemaNotFound(f"with id {id}", "it was never given, or its schema was removed")

    async def read(self, definition: Definition) -> Readied:
        """The schema that is defined, found to be one. Raises `InvalidSchema`, `MissingExtra`."""
        if definition.format == "protobuf":
            definition = await self._compiler.compiled(definition.text, definition.message)
        schema = open_schema(definition)
        message = schema.message if isinstance(schema, ProtobufSchema) else None
        return Readied(msgspec.structs.replace(definition, message=message), schema)

    async def problems(self, topic: str, definition: Definition, mode: Mode | None) -> tuple[list[str], int | None]:
        """Why a schema could not be registered as the next version, and which version it already is.

        Raises `InvalidSchema` if it is none.
        """
        schema = (await self.read(definition)).schema
        schemas = self.find(topic)
        if schemas is None:
            return [], None
        same = _same(schemas, schema)
        if same is not None:
            return [], same.version
        return incompatibilities(mode or schemas.compatibility, open_schema(schemas.latest.definition), schema), None

    # --- changing -----------------------------------------------------------------------------------------------------

    async def register(
        self,
        topic: Topic,
        wanted: Readied,
        *,
        by: str,
        compatibility: Mode | None = None,
        validate: bool | None = None,
    ) -> tuple[TopicSchemas, SchemaVersion]:
        """The schema as the topic's next version, or as the one that it is already; what is not given stays.

        Raises `IncompatibleSchema` if it may not follow the latest.
        """
        return await self._whole(self._register(topic, wanted, by, compatibility, validate))

    async def _register(
        self, topic: Topic, wanted: Readied, by: str, compatibility: Mode | None, validate: bool | None
    ) -> tuple[TopicSchemas, SchemaVersion]:
        definition, schema = wanted
        async with self._changing:
            topic.check()
            schemas = self.find(topic.full_name)
            mode: Mode = compatibility or (schemas.compatibility if schemas else COMPATIBILITY_DEFAULT)
            checks = validate if validate is not None else schemas.validate if schemas else True
            versions = schemas.versions if schemas else ()
            found = _same(schemas, schema) if schemas else None
            if found is None:
                if schemas is not None:
                    problems = incompatibilities(mode, open_schema(schemas.latest.definition), schema)
                    if problems:
                        raise IncompatibleSchema(topic.full_name, mode, problems)
                number = schemas.version_last + 1 if schemas else 1
                self._check_room(versions, definition)
                found = SchemaVersion(number, await self._next_id(), definition, _digest(schema), self._clock(), by)
                versions = (*versions, found)
            last = max(found.version, schemas.version_last if schemas else 0)
            changed = TopicSchemas(topic.record.incarnation, mode, checks, versions, last)
            if changed != schemas:
                await self._save(topic, changed)
                log.info("a schema was registered", topic=topic.full_name, version=found.version, id=found.id)
            return changed, found

    async def configure(self, topic: Topic, compatibility: Mode | None, validate: bool | None) -> TopicSchemas:
        """Change what holds for the next versions, and whether payloads are checked; None leaves it as it is."""
        return await self._whole(self._configure(topic, compatibility, validate))

    async def _configure(self, topic: Topic, compatibility: Mode | None, validate: bool | None) -> TopicSchemas:
        async with self._changing:
            topic.check()
            schemas = self.get(topic.full_name)
            changed = msgspec.structs.replace(
                schemas,
                compatibility=compatibility or schemas.compatibility,
                validate=schemas.validate if validate is None else validate,
            )
            if changed != schemas:
                await self._save(topic, changed)
            return changed

    async def remove(self, topic: Topic, version: int | None) -> list[SchemaVersion]:
        """Give up one version, or all of them; of a topic without any, nothing is checked. Returns what is gone."""
        return await self._whole(self._remove(topic, version))

    async def _remove(self, topic: Topic, version: int | None) -> list[SchemaVersion]:
        async with self._changing:
            topic.check()
            schemas = self.get(topic.full_name)
            gone = list(schemas.versions) if version is None else [self.version(topic.full_name, version=version)]
            kept = tuple(each for each in schemas.versions if each not in gone)
            if kept:
                await self._save(topic, msgspec.structs.replace(schemas, versions=kept))
            else:
                await self._records.remove(topic.full_name)
                topic.schema = None
            log.info("schemas were removed", topic=topic.full_name, count=len(gone))
            return gone

    async def _whole(self, work: Coroutine[Any, Any, T]) -> T:
        """Finish what was begun, even if the caller gives up: what is known must be what is kept."""
        task = asyncio.get_running_loop().create_task(work, name="change schemas")
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_unheard)
            raise

    async def _save(self, topic: Topic, schemas: TopicSchemas) -> None:
        await self._records.put(topic.full_name, schemas)
        topic.schema = TopicCheck(topic.full_name, schemas)

    async def _next_id(self) -> int:
        """Kept before it is used: an id that a batch may have is never given again."""
        before = self._last_id.get(_LAST)
        id = 1 if before is None else before.id + 1
        await self._last_id.put(_LAST, LastId(id))
        return id

    def _check_room(self, versions: tuple[SchemaVersion, ...], definition: Definition) -> None:
        if len(versions) >= VERSIONS_MAX:
            problem = f"the topic has {len(versions)} versions, at most {VERSIONS_MAX} are possible"
            raise InvalidArgument("topic", f"{problem}; remove some (`sealane schema remove TOPIC --version N`)")
        every = [version for _, schemas in self.all() for version in schemas.versions]
        if len(every) >= SCHEMAS_MAX:
            raise InvalidArgument("topic", f"the node has {len(every):,} schemas, at most {SCHEMAS_MAX:,} are possible")
        size = sum(version.size for version in every) + len(definition.text) + len(definition.compiled or b"")
        if size > SCHEMAS_BYTES_MAX:
            problem = f"the node's schemas would have {size:,} bytes, at most {SCHEMAS_BYTES_MAX:,} are possible"
            raise InvalidArgument("topic", problem)


def _unheard(work: asyncio.Task[Any]) -> None:
    """The end of a change whose caller has gone: what went wrong with it is not to be lost."""
    error = None if work.cancelled() else work.exception()
    if error is not None:
        log.warning("a change to a schema failed after its caller had gone", reason=str(error))


def _digest(schema: Schema) -> bytes:
    return hashlib.sha256(schema.format.encode() + b"\0" + schema.identity).digest()


def _same(schemas: TopicSchemas, schema: Schema) -> SchemaVersion | None:
    """The version that says the same, if there is one, the latest first."""
    digest = _digest(schema)
    return next((each for each in reversed(schemas.versions) if each.digest == digest), None)
