"""What is kept of a topic's schemas."""

from __future__ import annotations

import msgspec

from sealane.schemas import Definition, Mode


class SchemaVersion(msgspec.Struct, frozen=True):
    """One of a topic's schemas. Neither its number nor its id is ever another one's."""

    version: int
    """From 1, one after the other, in its topic."""
    id: int
    """On the whole node; it rides in the metadata of batches."""
    definition: Definition
    digest: bytes
    """Of what it says: the same for one that is only written differently."""
    registered_us: int
    by: str
    """Who registered it."""

    @property
    def size(self) -> int:
        """What it takes to keep it, about."""
        return len(self.definition.text) + len(self.definition.compiled or b"")


class TopicSchemas(msgspec.Struct, frozen=True):
    """All versions of one topic, the latest last; there is one at least."""

    incarnation: int
    """Of the topic: another one of the same name does not inherit them."""
    compatibility: Mode
    validate: bool
    """Whether what is published is checked."""
    versions: tuple[SchemaVersion, ...]
    version_last: int
    """The highest number so far, of one that may have been removed since."""

    @property
    def latest(self) -> SchemaVersion:
        return self.versions[-1]

    def find(self, *, version: int | None = None, id: int | None = None) -> SchemaVersion | None:
        """The one of that number and id, where they are given; else the latest."""
        if version is None and id is None:
            return self.latest
        return next((each for each in self.versions if version in (None, each.version) and id in (None, each.id)), None)


class LastId(msgspec.Struct, frozen=True):
    """The highest id that was given so far."""

    id: int
