"""Forgetting somebody: what messages say of a phone number, or under a key, is taken out of the lake.

The messages themselves stay, with their ids, offsets and times and without key, headers and body: what was proved of
them still holds, and nobody can tell any more whom they were about.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from sealane.errors import CorruptData, InvalidArgument, KeyUnavailable
from sealane.pipeline.bulk.resealing import BODIES, SEALED_BY
from sealane.pipeline.bulk.rewriting import BulkReport, Changed, Told, all_files, domain_of, rewrite, with_column
from sealane.pipeline.clean.bodies import clean_body
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.phone_numbers import is_number_by_name
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys

_CONTENT = ("key", "headers", "payload", "body", SEALED_BY)
"""What is taken away, as far as the table has it."""
_END_TO_END = "sealed-end-to-end"


def forget(
    lake: Lake,
    keys: LakeKeys,
    *,
    number: str | None = None,
    key: bytes | None = None,
    domain: str | None = None,
    dry_run: bool = False,
    told: Told | None = None,
) -> BulkReport:
    """Take away what is about a phone number, however it is written, or what has this message key; in one domain or in
    all of them. Give one of the two.

    A number is found where cleaning finds it: as a key, in headers, as a value of JSON. Bodies that do not open are
    counted as `closed`: nobody knows what is in them. It may be stopped and run again; another run finds nothing.
    """
    if (number is None) == (key is None):
        raise InvalidArgument("number", "name a phone number or a message key, one of them")
    if number is not None and not is_number_by_name(number):
        raise InvalidArgument(
            "number", f"{number!r} is no phone number: write it as +49 170 1234567, or as it was sent"
        )
    report = BulkReport()
    files = [each for each in all_files(lake, BODIES) if domain in (None, domain_of(each[1]))]
    for done, (table, path) in enumerate(files, 1):
        column = BODIES[table]

        def change(batch: pa.RecordBatch, domain: str, column: str = column) -> Changed:
            wanted = _of_key(key, keys, domain) if key is not None else _about(number or "", keys, domain, column)
            return _forgotten(batch, wanted)

        rewrite(lake, table, path, change, report, dry_run=dry_run)
        if told is not None:
            told(done, len(files))
    return report


Wanted = Callable[[dict[str, Any]], bool | None]
"""Whether a row is about somebody; None if nobody can tell."""


def _of_key(key: bytes, keys: LakeKeys, domain: str) -> Wanted:
    kept = Numbers(keys, domain).in_bytes(key)

    def wanted(row: dict[str, Any]) -> bool:
        return row["key"] in (key, kept)

    return wanted


def _about(number: str, keys: LakeKeys, domain: str, column: str) -> Wanted:
    numbers = Numbers(keys, domain)
    text = numbers.hashed(number)
    data = text.encode()

    def wanted(row: dict[str, Any]) -> bool | None:
        key, headers, body = row["key"], row["headers"] or [], row[column]
        if key is not None and numbers.in_bytes(key) == data:
            return True
        if any(value == text for _, value in numbers.in_headers(headers)):
            return True
        if body is None:
            return False
        if row.get(SEALED_BY) is not None:
            try:
                body = keys.open(domain, row["id"], body)
            except (CorruptData, KeyUnavailable):
                return None
        # A raw body still has the number itself, in whatever writing: cleaned, it has the hash.
        cleaned = clean_body(body, numbers, None).body or body
        if data in cleaned:
            return True
        return None if row.get("body_format") == _END_TO_END else False

    return wanted


def _forgotten(batch: pa.RecordBatch, wanted: Wanted) -> Changed:
    names = [name for name in (*_CONTENT, "id", "body_format") if name in batch.schema.names]
    judged = [wanted(row) for row in batch.select(names).to_pylist()]
    found, closed = judged.count(True), judged.count(None)
    if found:
        kept = pa.array([None if is_wanted else row for row, is_wanted in enumerate(judged)], pa.int64())
        for name in _CONTENT:
            if name in batch.schema.names:
                # Taking no row gives null, whatever the type.
                batch = with_column(batch, name, batch[name].take(kept))
    return Changed(batch, found, closed)
