"""From a DataFrame's rows to messages: which column is which part of a message, and which topic a row goes to.

A column is found by its name, or by the option `columns`. Nothing is left out silently: a column that is no part of a
message is refused before any job, except those by which the source says where a message was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import pyarrow as pa

from sealane.errors import InvalidMessage
from sealane.message.arrow_compute import pc
from sealane.spark.errors import InvalidOption
from sealane.spark.sink.routing import by_topic, gathered, qualified
from sealane.spark.sink.uuids import ids_of

_BYTES = ("binary", "string")
_WHOLE = ("tinyint", "smallint", "int", "bigint")
_TIME = ("timestamp",)
_TYPES: Mapping[str, tuple[str, ...]] = {
    "id": _BYTES,
    "key": _BYTES,
    "payload": _BYTES,
    "headers": ("map<string,string>",),
    "priority": _WHOLE,
    "created": _TIME,
    "expires": _TIME,
    "deliver_at": _TIME,
    "envelope": ("binary",),
    "topic": ("string",),
    "domain": ("string",),
}
"""What the sink takes, and the types it takes it in, as Spark writes them."""
_ROUTING = frozenset({"topic", "domain"})
_WHERE_IT_WAS = frozenset({"producer", "domain", "topic", "partition", "offset"})
"""What the source adds to a message. The sink has no use for it, and what was read can be written as it is."""
_READ_OUT = frozenset({"value", "_corrupt"})
"""What the source read out of the payload: a change to it would be lost."""


class Layout(msgspec.Struct, frozen=True):
    """Where the parts of a message are in a DataFrame's rows. Made on the driver, used on executors."""

    columns: dict[str, int]
    """The message's column → the place of the DataFrame's."""
    topic: str | None
    """Where rows go that name no topic themselves."""
    topic_place: int | None
    """The column by which each row says where it goes; None: all go to `topic`."""
    domain_place: int | None

    def messages(self, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Rows as message columns, each time of one topic, in their order within it.

        Raises `InvalidMessage` for a row without a topic, and for an id that is none.
        """
        if self.topic_place is None:
            assert self.topic is not None, "a layout has a topic, or a column that names one"
            for batch in batches:
                yield self.topic, self._conformed(batch)
            return
        # Rows of many topics would make many small batches: they are gathered first.
        for batch in gathered(batches):
            topics = self._topics(batch)
            yield from by_topic(topics, self._conformed(batch))

    def _topics(self, batch: pa.RecordBatch) -> pa.Array:
        topics = batch.column(self.topic_place)
        if self.domain_place is not None:
            topics = qualified(batch.column(self.domain_place), topics)
        if topics.null_count and self.topic is not None:
            return pc.fill_null(topics, self.topic)
        if topics.null_count:
            name = batch.schema.names[self.topic_place]
            raise InvalidMessage(
                "topic",
                f"is null in {topics.null_count:,} of {len(topics):,} rows (column {name!r}); say where such rows go "
                f"by the options topic='…' and columns='topic={name}', or leave them out",
            )
        return topics

    def _conformed(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        arrays = []
        for name, place in self.columns.items():
            column = batch.column(place)
            arrays.append(ids_of(column) if name == "id" else column)
        return pa.RecordBatch.from_arrays(arrays, names=list(self.columns))


def layout_of(fields: Sequence[tuple[str, str]], *, columns: Mapping[str, str], topic: str | None) -> Layout:
    """The layout of a DataFrame with these columns (name, Spark's name of the type).

    `columns` says which column of the DataFrame is which of the message (`{"payload": "body"}`). A `topic` column sends
    each row where it says, unless `topic` is given: then all rows go there, for who copies a topic does not mean the
    topic that the rows came from. Where `columns` names the topic column it counts in any case, and `topic` is for the
    rows in which it is null. Raises `InvalidOption`.
    """
    names = [name for name, _ in fields]
    used = _assigned(names, columns)
    routed = "topic" in columns or (topic is None and "topic" in used)
    if not routed:
        if topic is None:
            problem = "is missing: name the topic that rows go to, or give the DataFrame a column 'topic'"
            raise InvalidOption("topic", problem)
        used = {part: place for part, place in used.items() if part not in _ROUTING}
    elif "topic" in columns and "domain" not in columns:
        used.pop("domain", None)  # It belongs to the topic that the rows came from, not to the one they go to.
    _check_rest(names, used)
    if "payload" not in used:
        problem = (
            f"no column is the payload; there are {_listed(names)}: name one 'payload', or say columns='payload=…'"
        )
        raise InvalidOption("columns", problem)
    for part, place in list(used.items()):
        if not _says_something(part, *fields[place]):
            del used[part]
    topic_place, domain_place = used.pop("topic", None), used.pop("domain", None)
    return Layout(used, topic, topic_place, domain_place)


def _assigned(names: Sequence[str], columns: Mapping[str, str]) -> dict[str, int]:
    """Which column each part of a message is: by the option, else by its name."""
    for part, name in columns.items():
        if part not in _TYPES:
            raise InvalidOption("columns", f"a message has no {part!r}; it has {_listed(_TYPES)}")
        if name not in names:
            raise InvalidOption("columns", f"{part}={name}: the DataFrame has no column {name!r}, but {_listed(names)}")
    wanted = {part: columns.get(part, part) for part in _TYPES}
    for name in wanted.values():
        if (times := names.count(name)) > 1:
            raise InvalidOption("columns", f"the DataFrame has {times} columns {name!r}; rename all but one")
    return {part: names.index(name) for part, name in wanted.items() if name in names}


def _check_rest(names: Sequence[str], used: Mapping[str, int]) -> None:
    """Refuse columns that nobody would write: what is in them would be lost."""
    taken = {names[place] for place in used.values()}
    rest = [name for name in names if name not in taken and name not in _WHERE_IT_WAS]
    if not rest:
        return
    drop = f"leave them out (df.drop({', '.join(map(repr, rest))}))"
    if _READ_OUT.issuperset(rest):
        problem = f"{_listed(rest)} is what was read out of the payload, and the payload is what is written; {drop}, or"
        raise InvalidOption("columns", f"{problem} make a payload of it (to_json, to_avro)")
    problem = f"{_listed(rest)}: no part of a message is called that; {drop}, or say which part it is"
    raise InvalidOption("columns", f"{problem} (columns='payload={rest[0]}'); there are {_listed(_TYPES)}")


def _says_something(part: str, name: str, kind: str) -> bool:
    """Whether a column can have values; raises if they are of the wrong type."""
    if kind == "void" and part != "payload":
        return False  # `lit(None)`: null in each row, as if it were not there.
    if kind not in _TYPES[part] and not (kind.startswith("string collate ") and "string" in _TYPES[part]):
        problem = f"column {name!r} is {kind}; as a message's {part} it has to be {' or '.join(_TYPES[part])}"
        raise InvalidOption("columns", f"{problem}: cast it")
    return True


def _listed(names: Sequence[str] | Mapping[str, object]) -> str:
    return ", ".join(map(repr, names)) or "none"
