"""Forgetting somebody: what messages say of a phone number, or under a key, is taken out of the lake.

The messages themselves stay, with their ids, offsets and times and without key, headers and body: what was proved of
them still holds, and nobody can tell any more whom they were about.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from sealane.errors import CorruptData, InvalidArgument, KeyUnavailable
from sealane.pipeline.bulk.resealing import BODIES, SEALED_BY
from sealane.pipeline.bulk.rewriting import BulkReport, Changed, Told, all_files, domain_of, rewrite, with_column
from sealane.pipeline.clean.bodies import clean_body
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.phone_numbers import is_number_by_name
from sealane.pipeline.lake.tables import CLEAN_MESSAGES, Lake, Table
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.typed.files import topic_of
from sealane.pipeline.typed.forgetting import Ids, Subject, TypedTables

_CONTENT = ("key", "headers", "payload", "body", SEALED_BY)
"""What is taken away, as far as the table has it."""
_END_TO_END = "sealed-end-to-end"
ALL_DOMAINS = "*"
"""Instead of a domain's name, of which it cannot be one."""


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
    _check(number, key)
    report = BulkReport()
    files = [each for each in all_files(lake, BODIES) if domain in (None, domain_of(each[1]))]
    if domain is not None and not files:
        raise InvalidArgument("domain", f"{lake.root} has no messages of {domain!r}")

    def wanted_in(domain: str, column: str) -> Wanted:
        return _of_key(key, keys, domain) if key is not None else _about(number or "", keys, domain, column)

    typed = TypedTables(lake, domain)
    # Rows that tell by themselves go last: until then they tell which messages it is about. The others, of which only
    # the clean table tells, go before that is changed. So another run finds whatever this one has left.
    own = typed.about(lambda domain: _subject(number, key, keys, domain))
    typed.forget(_known_elsewhere(typed, files, wanted_in, own), report, dry_run=dry_run)
    for done, (table, path) in enumerate(files, 1):
        column = BODIES[table]

        def change(batch: pa.RecordBatch, domain: str, column: str = column, path: Path = path) -> Changed:
            return _forgotten(batch, _or_one_of(own.get(topic_of(path)), wanted_in(domain, column)))

        rewrite(lake, table, path, change, report, dry_run=dry_run)
        if told is not None:
            told(done, len(files))
    typed.forget(own, report, dry_run=dry_run)
    return report


def _subject(number: str | None, key: bytes | None, keys: LakeKeys, domain: str) -> Subject:
    numbers = Numbers(keys, domain)
    if key is not None:
        return Subject(frozenset({key, numbers.in_bytes(key)}))
    text = numbers.hashed(number or "")
    return Subject(frozenset({text.encode()}), text)


def _known_elsewhere(
    typed: TypedTables, files: list[tuple[Table, Path]], wanted_in: Callable[[str, str], Wanted], own: Ids
) -> Ids:
    """Messages of topics with tables of their own that are about somebody by what the clean table has of them alone."""
    found: dict[str, frozenset[bytes]] = {}
    for table, path in files:
        topic = topic_of(path)
        if table != CLEAN_MESSAGES or topic not in typed.topics:
            continue
        wanted = wanted_in(domain_of(path), BODIES[table])
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(columns=[*_CONTENT[:2], BODIES[table], SEALED_BY, "id", "body_format"]):
                ids = frozenset(row["id"] for row in batch.to_pylist() if wanted(row))
                found[topic] = found.get(topic, frozenset()) | (ids - own.get(topic, frozenset()))
    return found


def _or_one_of(ids: frozenset[bytes] | None, wanted: Wanted) -> Wanted:
    """The same, or one of these messages, as long as anything is left of it."""
    if not ids:
        return wanted
    return lambda row: (row["id"] in ids and any(row.get(name) is not None for name in _CONTENT)) or wanted(row)


def subject_of(
    keys: LakeKeys, *, number: str | None = None, key: bytes | None = None, domain: str | None = None
) -> str:
    """Whom it is about, as it may be written down: a hash, the same for every writing of a number.

    In one domain it is the hash that the domain's messages have; in all of them it is one that no message has.
    """
    _check(number, key)
    place = domain or ALL_DOMAINS
    return keys.hash_number(place, number) if number is not None else keys.hash_key(place, key or b"")


def _check(number: str | None, key: bytes | None) -> None:
    if (number is None) == (key is None):
        raise InvalidArgument("number", "name a phone number or a message key, one of them")
    if number is not None and not is_number_by_name(number):
        raise InvalidArgument(
            "number", f"{number!r} is no phone number: write it as +49 170 1234567, or as it was sent"
        )


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
