"""The options of the source and the sink: all that can be said of them without a node is said here, before any job."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import msgspec

from sealane.schemas.formats import Format
from sealane.spark.errors import InvalidOption
from sealane.spark.options import texts as value
from sealane.spark.options.access import ACCESS_OPTIONS, Access, find_access
from sealane.spark.options.names import BATCH_OPTIONS, READ_OPTIONS, STREAM_OPTIONS, WRITE_OPTIONS, named
from sealane.spark.options.texts import OffsetsByTopic

if TYPE_CHECKING:
    from sealane.spark.values import Values

Starting = Literal["earliest", "latest"] | datetime | OffsetsByTopic
Ending = Literal["latest"] | datetime | OffsetsByTopic
ValueFormat = Literal["json", "avro"]
VALUE_FORMATS: tuple[ValueFormat, ...] = ("json", "avro")
"""Of schemas that a reader gives; the registry has more."""
REGISTRY = "registry"
LogKind = Literal["messages", "history"]
LOG_KINDS: tuple[LogKind, ...] = ("messages", "history")
NOT_OF_HISTORY = (
    *("subscription", "startingTimestamp", "endingTimestamp"),
    *("decryptionKeys", "valueFormat", "valueSchema", "valueSchemaFrom"),
)
"""Options that mean something for messages alone."""


class ReadOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a user wants to read, and how."""

    topics: tuple[str, ...]
    """Names and patterns, as they were given."""
    log: LogKind = "messages"
    """Whether the messages are read, or what has happened to them."""
    starting: Starting
    ending: Ending
    messages_max: int | None
    """In one micro-batch."""
    subscription: str | None
    min_partitions: int | None
    fail_on_data_loss: bool
    keys: tuple[str, ...]
    """PEM texts of private keys that open envelopes."""
    value_format: Format | None
    value_schema: str | None
    from_registry: bool = False
    """Whether format and schema are those that the topic has registered: see `sealane.spark.source.registry`."""
    schema_id: int | None = None
    """By which payloads are known that another version was written with, where that matters to reading them."""
    access: Access

    def values(self) -> Values | None:
        """How payloads become columns, if they do."""
        if self.value_format is None or self.value_schema is None:
            return None
        from sealane.spark.values import values_of

        return values_of(self.value_format, self.value_schema)

    def __repr__(self) -> str:
        """Without what is secret."""
        return f"ReadOptions(topics={self.topics!r}, access={self.access!r}, keys={len(self.keys)})"


class WriteOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Where a user wants rows to go, and how."""

    topic: str | None
    """None: each row has its own, in the column `topic`."""
    columns: dict[str, str]
    """By message column, the DataFrame's column it comes from, where it has another name."""
    transaction: str | None
    seal_for: tuple[str, ...]
    """Recipients whose keys are in the node's directory."""
    access: Access


def read_options(options: Mapping[str, str], *, is_stream: bool | None = None) -> ReadOptions:
    """What the options say of reading: a stream, a batch, or, where that is not known yet, either."""
    given = named(options)
    _refuse(given, WRITE_OPTIONS, "is for writing; reading has no such option")
    if is_stream is True:
        _refuse(given, BATCH_OPTIONS, "is for batches (spark.read); a stream has no end")
    if is_stream is False:
        _refuse(given, STREAM_OPTIONS, "is for streams (spark.readStream); a batch reads all there is in its range")
    topics = _read_topics(given)
    log = _log(given)
    from_registry = _from_registry(given, topics)
    value_format, value_schema = _values(given)
    starting = _starting(given, topics)
    if is_stream is False and starting == "latest":
        raise InvalidOption("startingOffsets", "'latest' is for streams: a batch from there would be empty")
    ending = _ending(given, topics)
    if isinstance(starting, datetime) and isinstance(ending, datetime) and starting > ending:
        raise InvalidOption("endingTimestamp", f"{ending} is before startingTimestamp, {starting}")
    read = ReadOptions(
        topics=topics,
        log=log,
        starting=starting,
        ending=ending,
        messages_max=_positive(given, "maxMessagesPerTrigger"),
        subscription=_text(given, "subscription"),
        min_partitions=_positive(given, "minPartitions"),
        fail_on_data_loss=value.truth("failOnDataLoss", given.get("failOnDataLoss", "true")),
        keys=value.private_keys("decryptionKeys", given["decryptionKeys"]) if "decryptionKeys" in given else (),
        value_format=value_format,
        value_schema=value_schema,
        from_registry=from_registry,
        access=_access(given),
    )
    read.values()
    return read


def write_options(options: Mapping[str, str]) -> WriteOptions:
    """What the options say of writing."""
    given = named(options)
    _refuse(given, READ_OPTIONS, "is for reading; writing has no such option")
    topic = _topic_text(given)
    return WriteOptions(
        topic=None if topic is None else value.topic_name("topic", topic.strip()),
        columns=value.renamed("columns", given["columns"]) if "columns" in given else {},
        transaction=_text(given, "transaction"),
        seal_for=value.listed("sealFor", given["sealFor"]) if "sealFor" in given else (),
        access=_access(given),
    )


def _refuse(given: Mapping[str, str], names: frozenset[str], problem: str) -> None:
    for name in given:
        if name in names:
            raise InvalidOption(name, problem)


def _read_topics(given: Mapping[str, str]) -> tuple[str, ...]:
    text = _topic_text(given)
    if text is None:
        allowed = "a topic's name, several with commas between them, or a pattern such as shop/*"
        raise InvalidOption("topic", f"is missing; it is {allowed}")
    return value.topics("topic", text)


def _log(given: Mapping[str, str]) -> LogKind:
    text = given.get("log", "messages")
    found = next((known for known in LOG_KINDS if text.strip().lower() == known), None)
    if found is None:
        raise InvalidOption("log", f"{text!r} is not known; it is one of {', '.join(LOG_KINDS)}")
    if found == "history":
        _refuse(given, frozenset(NOT_OF_HISTORY), "is for messages; log=history has no such option")
    return found


def _topic_text(given: Mapping[str, str]) -> str | None:
    """What `topic` says, or a path: `load("orders")` reads orders."""
    paths = ",".join(json.loads(given["paths"])) if "paths" in given else given.get("path")
    topic = given.get("topic")
    if topic is not None and paths is not None and topic != paths:
        raise InvalidOption("topic", f"is {topic!r}, and load, save or start name {paths!r}; give one of them")
    return paths if topic is None else topic


def _starting(given: Mapping[str, str], topics: tuple[str, ...]) -> Starting:
    _refuse_both(given, "startingOffsets", "startingTimestamp")
    if "startingTimestamp" in given:
        return value.moment("startingTimestamp", given["startingTimestamp"])
    found = value.offsets("startingOffsets", given.get("startingOffsets", "earliest"), topics, ("earliest", "latest"))
    if isinstance(found, str):
        return "latest" if found == "latest" else "earliest"
    return found


def _ending(given: Mapping[str, str], topics: tuple[str, ...]) -> Ending:
    _refuse_both(given, "endingOffsets", "endingTimestamp")
    if "endingTimestamp" in given:
        return value.moment("endingTimestamp", given["endingTimestamp"])
    found = value.offsets("endingOffsets", given.get("endingOffsets", "latest"), topics, ("latest",))
    return "latest" if isinstance(found, str) else found


def _refuse_both(given: Mapping[str, str], one: str, other: str) -> None:
    if one in given and other in given:
        raise InvalidOption(other, f"{given[other]!r} is given beside {one}, {given[one]!r}; give one of them")


def _values(given: Mapping[str, str]) -> tuple[ValueFormat | None, str | None]:
    text, schema = given.get("valueFormat"), given.get("valueSchema")
    if text is None and schema is None:
        return None, None
    found = next((known for known in VALUE_FORMATS if text is not None and text.strip().lower() == known), None)
    if found is None:
        given_as = "is missing beside valueSchema" if text is None else f"{text!r} is not known"
        raise InvalidOption("valueFormat", f"{given_as}; it is one of {', '.join(VALUE_FORMATS)}")
    if schema is None:
        wanted = "Avro's JSON" if found == "avro" else "Spark's DDL (`id BIGINT, city STRING`) or its JSON"
        raise InvalidOption("valueSchema", f"is missing beside valueFormat={found}; it is a schema in {wanted}")
    return found, schema


def _from_registry(given: Mapping[str, str], topics: tuple[str, ...]) -> bool:
    text = given.get("valueSchemaFrom")
    if text is None:
        return False
    if text.strip().lower() != REGISTRY:
        raise InvalidOption("valueSchemaFrom", f"{text!r} is not known; it is {REGISTRY!r}, or left out")
    for other in ("valueFormat", "valueSchema"):
        if other in given:
            raise InvalidOption("valueSchemaFrom", f"is given beside {other}, and both say what payloads look like")
    if len(topics) != 1 or "*" in topics[0]:
        raise InvalidOption("valueSchemaFrom", f"is for one topic, which {', '.join(topics)!r} is not")
    return True


def _access(given: Mapping[str, str]) -> Access:
    return find_access({name: text for name, text in given.items() if name in ACCESS_OPTIONS})


def _positive(given: Mapping[str, str], name: str) -> int | None:
    return value.positive(name, given[name]) if name in given else None


def _text(given: Mapping[str, str], name: str) -> str | None:
    text = given.get(name)
    if text is not None and not text.strip():
        raise InvalidOption(name, "is empty; leave it out, or give it a name")
    return text
