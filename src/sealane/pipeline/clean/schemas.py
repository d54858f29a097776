"""What payloads of each topic have to be, by the schemas that it has registered: asked of the node once a cycle."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import msgspec

import sealane
from sealane.errors import MissingExtra, SchemaNotFound
from sealane.log import get_log
from sealane.pipeline.settings import PipelineSettings
from sealane.schemas.formats import Definition, Format, definition_shown, open_schema
from sealane.schemas.schema import Schema

log = get_log("sealane.pipeline")

_SCHEMAS_CACHED = 1024


class TopicSchema(msgspec.Struct, frozen=True):
    """Every version that a topic has registered, the latest first. It travels to executors as text."""

    versions: tuple[Definition, ...]

    @property
    def format(self) -> Format:
        return self.versions[0].format

    def problem(self, payload: bytes) -> str | None:
        """Why a payload fits none of the versions, by the latest of them: where, and what is expected there."""
        latest = None
        for version in self.versions:
            misfit = _opened(version).check([payload])
            if misfit is None:
                return None
            latest = latest or f"it does not fit the schema at {misfit.path}: {misfit.problem}"
        return latest


@lru_cache(maxsize=_SCHEMAS_CACHED)
def _opened(version: Definition) -> Schema:
    """The same for the same text: a worker's next task goes on with what it has."""
    return open_schema(version)


def registered_schemas(settings: PipelineSettings) -> Mapping[str, TopicSchema]:
    """Those of the topics that are taken in, by their full names.

    A schema whose library is not installed is left out, with a warning: then its payloads are not checked.
    """
    with sealane.connect_sync(settings.url, profile=settings.profile, data=settings.data) as lane:
        taken = {each.name for each in lane.logs(*(name.strip() for name in settings.topics.split(",")))}
        topics = [told["topic"] for told in lane.administer("schema.list") if told["topic"] in taken]
        found = {topic: _versions(lane, topic) for topic in topics}
    return {topic: TopicSchema(versions) for topic, versions in found.items() if versions}


def _versions(lane: sealane.SyncLane, topic: str) -> tuple[Definition, ...]:
    try:
        numbers = sorted((told["version"] for told in lane.administer("schema.list", topic=topic)), reverse=True)
        shown = [lane.administer("schema.show", topic=topic, version=number) for number in numbers]
        definitions = tuple(map(definition_shown, shown))
        for definition in definitions:
            _opened(definition)
    except SchemaNotFound:
        return ()  # It was removed meanwhile.
    except MissingExtra as error:
        log.warning("payloads of a topic are not checked by its schema", topic=topic, why=str(error))
        return ()
    return definitions
