"""Fields of Arrow schemas: which types can be registered, and whether one field can be read as another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa

from sealane.errors import InvalidSchema
from sealane.schemas.paths import ANY, Step, path_of
from sealane.schemas.schema import Problem

FIELDS_MAX = 2_000
"""Fields of one schema, those within others too."""
TYPES_NESTED_MAX = 32
"""Types within types."""

_SHOWN_CHARACTERS = 80

Steps = tuple[Step, ...]


def check_fields(fields: Iterable[pa.Field]) -> None:
    """Raise `InvalidSchema` for what cannot be checked: types whose values are in other messages, or elsewhere; and
    `UnicodeDecodeError` for a name that is no text.
    """
    waiting: list[tuple[pa.Field, int]] = [(each, 0) for each in fields]
    count = 0
    while waiting:
        field, nested = waiting.pop()
        count += 1
        if count > FIELDS_MAX:
            raise refused(f"it has more than {FIELDS_MAX:,} fields")
        if nested > TYPES_NESTED_MAX:
            raise refused(f"types are within types more than {TYPES_NESTED_MAX} deep")
        name = field.name  # One that is no UTF-8 is found here, wherever it is.
        if not _is_plain(field.type):
            raise refused(f"{name[:80]!r} is of type {_named(field.type)}, which is not taken; use a plain type")
        if pa.types.is_struct(field.type):
            check_names([each.name for each in field.type])
        waiting += [(each, nested + 1) for each in _within(field.type)]


def check_names(names: Sequence[str]) -> None:
    """Raise `InvalidSchema` if two fields have one name: nobody could tell which is meant."""
    twice = {name for name, times in Counter(names).items() if times > 1}
    if twice:
        raise refused(f"the field {min(twice)[:80]!r} is there more than once")


def unread(read: pa.Field, written: pa.Field, steps: Steps) -> Iterator[Problem]:
    """Why what is written as one field cannot be read as another: a struct may have more fields than are read."""
    if written.nullable and not read.nullable:
        yield Problem(path_of(steps), "it must not be null, and may be")
    if pa.types.is_struct(read.type) and pa.types.is_struct(written.type):
        yield from all_unread(list(read.type), list(written.type), steps)
    elif read.type.id == written.type.id and (inner := _item_fields(read.type, written.type)) is not None:
        yield from unread(*inner, (*steps, ANY))
    elif read.type != written.type:
        yield Problem(path_of(steps), f"it must be {_named(read.type)}, and is {_named(written.type)}")


def all_unread(read: list[pa.Field], written: list[pa.Field], steps: Steps) -> Iterator[Problem]:
    """The same for fields by their names: each that is read must be there once."""
    by_name: dict[str, pa.Field] = {}
    twice: set[str] = set()
    for each in written:
        twice |= {each.name} & by_name.keys()
        by_name[each.name] = each
    for each in read:
        place = (*steps, each.name)
        if each.name not in by_name:
            yield Problem(path_of(place), f"it is missing; it must be {_named(each.type)}")
        elif each.name in twice:
            yield Problem(path_of(place), "it is there more than once")
        else:
            yield from unread(each, by_name[each.name], place)


def refused(problem: str) -> InvalidSchema:
    return InvalidSchema("arrow", problem)


def _named(type: pa.DataType) -> str:
    """A type for people; one that is long, as strangers may send it, is cut."""
    text = str(type)
    return text if len(text) <= _SHOWN_CHARACTERS else text[:_SHOWN_CHARACTERS] + "…"


def _is_plain(type: pa.DataType) -> bool:
    kinds = pa.types
    return not (
        kinds.is_dictionary(type)
        or kinds.is_run_end_encoded(type)
        or kinds.is_union(type)
        or kinds.is_string_view(type)
        or kinds.is_binary_view(type)
        or kinds.is_list_view(type)
        or kinds.is_large_list_view(type)
        or isinstance(type, pa.BaseExtensionType)
    )


def _within(type: pa.DataType) -> list[pa.Field]:
    return [type.field(place) for place in range(type.num_fields)]


def _item_fields(read: pa.DataType, written: pa.DataType) -> tuple[pa.Field, pa.Field] | None:
    """The items of two lists, or the values of two maps with the same keys."""
    kinds = pa.types
    if kinds.is_list(read) or kinds.is_large_list(read):
        return read.value_field, written.value_field
    if kinds.is_fixed_size_list(read) and read.list_size == written.list_size:
        return read.value_field, written.value_field
    if kinds.is_map(read) and read.key_type == written.key_type and read.keys_sorted == written.keys_sorted:
        return read.item_field, written.item_field
    return None
