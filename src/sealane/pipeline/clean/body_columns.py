"""Bodies a column at a time: what `clean_body` makes of each payload, which is asked about few of them.

Whether payloads look like JSON, are text at all, or may be a phone number is decided for the whole column. What is left
to Python is what looks like JSON, what has a schema, and texts that may be a number.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

import numpy as np
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.clean.bodies import BodyFormat, CleanBody, clean_body, tell, written
from sealane.pipeline.clean.columns import Rows, replaced, taken
from sealane.pipeline.clean.number_columns import DomainNumbers
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.clean.suspects import Mask, may_be_numbers, may_have_numbers

FORMATS: tuple[BodyFormat, ...] = get_args(BodyFormat)
_JSON, _TEXT, _BINARY, _SEALED = range(len(FORMATS))
_NONE = -1
_NAMES = pa.array(FORMATS, pa.utf8())

# Expressions of RE2, over bytes.
_LIKE_JSON = r"\A[ \t\r\n]*[\[{]"
_UTF8 = (
    r"\A(?:[\x00-\x7f]|[\xc2-\xdf][\x80-\xbf]|\xe0[\xa0-\xbf][\x80-\xbf]|[\xe1-\xec\xee\xef][\x80-\xbf]{2}"
    r"|\xed[\x80-\x9f][\x80-\xbf]|\xf0[\x90-\xbf][\x80-\xbf]{2}|[\xf1-\xf3][\x80-\xbf]{3}|\xf4[\x80-\x8f][\x80-\xbf]{2})*\z"
)


class BodyColumns(NamedTuple):
    formats: pa.Array
    bodies: pa.Array | None
    """None where they are left out."""
    reasons: pa.Array


def clean_bodies(
    payloads: pa.Array,
    names: tuple[pa.Array, pa.Array],
    is_sealed: Mask,
    numbers: DomainNumbers,
    schemas: Mapping[str, TopicSchema],
    *,
    keeps: bool,
) -> BodyColumns:
    """What `clean_body` makes of each; `names` are the columns of domains and topics, `schemas` by full names.

    Without `keeps` bodies are not made.
    """
    return _Cleaning(payloads, names, numbers, keeps).clean(is_sealed, schemas)


class _Cleaning:
    """The rows of one batch, as far as they are known."""

    def __init__(
        self, payloads: pa.Array, names: tuple[pa.Array, pa.Array], numbers: DomainNumbers, keeps: bool
    ) -> None:
        self._payloads = pc.fill_null(payloads, b"") if payloads.null_count else payloads
        self._domains, self._topics = names
        self._numbers = numbers
        self._keeps = keeps
        self._formats = np.full(len(payloads), _NONE, dtype=np.int8)
        self._changed: dict[int, bytes | None] = {}
        """Bodies that are not the payload as it is."""
        self._reasons: dict[int, str] = {}

    def clean(self, is_sealed: Mask, schemas: Mapping[str, TopicSchema]) -> BodyColumns:
        self._formats[is_sealed] = _SEALED
        left = ~is_sealed
        for schema, rows in self._with_schemas(schemas):
            chosen = rows[left[rows]]
            self._one_by_one(chosen, schema)
            left[chosen] = False
        self._without_schema(np.flatnonzero(left))
        return self._columns()

    def _with_schemas(self, schemas: Mapping[str, TopicSchema]) -> list[tuple[TopicSchema, Rows]]:
        if not schemas or not len(self._payloads):
            return []
        full = pc.binary_join_element_wise(self._domains, self._topics, "/").dictionary_encode()
        topic_of = full.indices.to_numpy()
        return [
            (schemas[name], np.flatnonzero(topic_of == place))
            for place, name in enumerate(full.dictionary.to_pylist())
            if name in schemas
        ]

    def _without_schema(self, rows: Rows) -> None:
        if not len(rows):
            return
        payloads = taken(self._payloads, rows)
        like_json = _matches(payloads, _LIKE_JSON)
        self._documents(rows[like_json])
        others = rows[~like_json]
        if not len(others):
            return
        payloads = taken(self._payloads, others)
        is_text = _are_text(payloads)
        self._formats[others] = np.where(is_text, _TEXT, _BINARY)
        if self._keeps:
            self._one_by_one(others[is_text & may_be_numbers(payloads)], None)

    def _documents(self, rows: Rows) -> None:
        """JSON in which no number can be is read and written, without a look for one."""
        if not self._keeps or not len(rows):
            self._one_by_one(rows, None)
            return
        payloads = taken(self._payloads, rows)
        suspect = may_have_numbers(payloads)
        self._one_by_one(rows[suspect], None)
        plain = rows[~suspect]
        for row, payload in zip(plain.tolist(), taken(self._payloads, plain).to_pylist(), strict=True):
            told = tell(payload, None)
            body = written(told.document) if told.format == "json" else None if told.reason else payload
            self._note(row, payload, CleanBody(told.format, body, told.reason))

    def _one_by_one(self, rows: Rows, schema: TopicSchema | None) -> None:
        if not len(rows):
            return
        payloads = taken(self._payloads, rows).to_pylist()
        if not self._keeps:
            for row, payload in zip(rows.tolist(), payloads, strict=True):
                told = tell(payload, schema)
                self._note(row, payload, CleanBody(told.format, payload, told.reason))
            return
        domains = taken(self._domains, rows).to_pylist()
        for row, payload, domain in zip(rows.tolist(), payloads, domains, strict=True):
            self._note(row, payload, clean_body(payload, self._numbers.of(domain), schema))

    def _note(self, row: int, payload: bytes, found: CleanBody) -> None:
        if found.format is None:
            assert found.reason is not None
            self._reasons[row] = found.reason
            self._changed[row] = None
        else:
            self._formats[row] = FORMATS.index(found.format)
            if found.body is not payload:
                self._changed[row] = found.body

    def _columns(self) -> BodyColumns:
        count = len(self._formats)
        formats = _NAMES.take(pa.array(self._formats, mask=self._formats == _NONE))
        reasons = pa.nulls(count, pa.utf8())
        if self._reasons:
            reasons = pa.array([self._reasons.get(row) for row in range(count)], pa.utf8())
        if not self._keeps:
            return BodyColumns(formats, None, reasons)
        rows = np.fromiter(self._changed, dtype=np.int64, count=len(self._changed))
        bodies = replaced(self._payloads, rows, pa.array(list(self._changed.values()), self._payloads.type))
        return BodyColumns(formats, bodies, reasons)


def _are_text(payloads: pa.Array) -> Mask:
    """Which are UTF-8. Mostly all of them are, or none."""
    try:
        payloads.cast(pa.utf8())
    except pa.ArrowInvalid:
        return _matches(payloads, _UTF8)
    return np.ones(len(payloads), dtype=bool)


def _matches(data: pa.Array, expression: str) -> Mask:
    found: Mask = pc.match_substring_regex(data, expression).to_numpy(zero_copy_only=False)
    return found
