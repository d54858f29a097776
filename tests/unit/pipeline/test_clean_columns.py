"""A column at a time, bodies, keys and headers become what they become one by one, to the last bit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sealane.message.schema import HEADERS_TYPE
from sealane.pipeline.clean.bodies import CleanBody, clean_body
from sealane.pipeline.clean.body_columns import clean_bodies
from sealane.pipeline.clean.field_names import PHONE_WORDS
from sealane.pipeline.clean.number_columns import DomainNumbers, clean_headers, clean_keys
from sealane.pipeline.clean.schemas import TopicSchema
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.schemas.formats import Definition
from sealane.schemas.json.depth import JSON_DEPTH_MAX

KEYS = LakeKeys({1: bytes(32)}, bytes(32), Path("lake.keys"))
ORDER = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
SCHEMAS = {"shop/orders": TopicSchema((Definition("json", json.dumps(ORDER)),))}
PLACES = [("shop", "orders"), ("shop", "notes"), ("club", "orders")]

written = st.text(alphabet="+0123456789 ()./-", max_size=24)
numbers = (
    st.sampled_from(["+491701234567", "0049 170 1234567", "0170-1234567", "(030) 123456", "+49\u00a0170\u20111234567"])
    | written
    | st.builds("tel:{}".format, written)
    | st.builds(" {}\x1c".format, written)
    | st.text(alphabet="٠١٢٣٤٥٦٧٨٩+ ", max_size=16)
)
names = st.sampled_from([*sorted(PHONE_WORDS), "customerPhone", "TEL", "number", "note", "+491701234567"]) | st.text(
    max_size=5
)
documents = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | numbers | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=6,
)
as_json = st.builds(lambda document, ascii: json.dumps(document, ensure_ascii=ascii).encode(), documents, st.booleans())
payloads = (
    st.none()
    | st.binary(max_size=40)
    | st.text(max_size=40).map(str.encode)
    | numbers.map(str.encode)
    | as_json
    | st.builds(lambda spaces, text: spaces + text, st.sampled_from([b" ", b"\n\t", b"\x0b"]), as_json)
    | as_json.map(lambda text: text[:-1])
)
rows = st.lists(st.tuples(payloads, st.sampled_from(PLACES), st.booleans()), max_size=8)


def by_column(some: list[tuple[Any, tuple[str, str], bool]], *, keeps: bool) -> list[CleanBody]:
    found = clean_bodies(
        pa.array([payload for payload, _, _ in some], pa.binary()),
        (
            pa.array([domain for _, (domain, _), _ in some], pa.utf8()),
            pa.array([name for _, (_, name), _ in some], pa.utf8()),
        ),
        np.array([sealed for _, _, sealed in some], dtype=bool),
        DomainNumbers(KEYS),
        SCHEMAS,
        keeps=keeps,
    )
    bodies = [None] * len(some) if found.bodies is None else found.bodies.to_pylist()
    columns = zip(found.formats.to_pylist(), bodies, found.reasons.to_pylist(), strict=True)
    return [CleanBody(*each) for each in columns]


def one_by_one(some: list[tuple[Any, tuple[str, str], bool]]) -> list[CleanBody]:
    return [
        clean_body(payload or b"", DomainNumbers(KEYS).of(domain), SCHEMAS.get(f"{domain}/{name}"), is_sealed=sealed)
        for payload, (domain, name), sealed in some
    ]


def in_notes(*some: bytes) -> list[tuple[Any, tuple[str, str], bool]]:
    return [(payload, ("shop", "notes"), False) for payload in some]


@given(rows)
@example(in_notes(b'{"a": "\\u002b491701234567"}', b'{"a": " +491701234567"}', b'{"phone": 491701234567}'))
@example(in_notes(b'{"a": "tel: +491701234567"}', b'["00491701234567"]', b'{"0049 170 1234567": 1}'))
@example(in_notes('{"a": "＋491701234567"}'.encode(), b'{"a": 1e999999999999999999999}', b'{"a": "\xff"}'))
@example(in_notes(b"[" * (JSON_DEPTH_MAX + 1) + b"]" * (JSON_DEPTH_MAX + 1), b"{}", b"\x00" * 600))
@example(in_notes("٠١٧٠-١٢٣٤٥٦٧".encode(), b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80", b"\xf0\x9f\x98\x80"))
def test_bodies(some: list[tuple[Any, tuple[str, str], bool]]) -> None:
    expected = one_by_one(some)
    assert by_column(some, keeps=True) == expected
    assert by_column(some, keeps=False) == [each._replace(body=None) for each in expected]


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=30) | numbers.map(str.encode), st.sampled_from(["shop", "club"])))
)
def test_keys(some: list[tuple[bytes | None, str]]) -> None:
    keys, domains = ([each[place] for each in some] for place in (0, 1))
    found = clean_keys(pa.array(keys, pa.binary()), pa.array(domains, pa.utf8()), DomainNumbers(KEYS))
    assert found.to_pylist() == [key and DomainNumbers(KEYS).of(domain).in_bytes(key) for key, domain in some]


headers = st.none() | st.lists(st.tuples(names, st.none() | numbers | st.text(max_size=8)), max_size=3)


@given(st.lists(st.tuples(headers, st.sampled_from(["shop", "club"])), max_size=6), st.integers(0, 2))
def test_headers(some: list[tuple[Any, str]], before: int) -> None:
    maps, domains = ([each[place] for each in some] for place in (0, 1))
    whole = pa.array([*([[("phone", "01701234567")]] * before), *maps], HEADERS_TYPE)
    found = clean_headers(whole.slice(before), pa.array(domains, pa.utf8()), DomainNumbers(KEYS))
    expected = [each and DomainNumbers(KEYS).of(domain).in_headers(each) for each, domain in some]
    assert found.to_pylist() == expected
    assert found.type == HEADERS_TYPE


@pytest.mark.parametrize("word", sorted(PHONE_WORDS))
def test_every_word_of_a_name_is_found(word: str) -> None:
    for name in (word, word.upper(), f"customer{word.capitalize()}", f"x_{word}_2"):
        some = in_notes(json.dumps({name: "01701234567"}).encode())
        assert by_column(some, keeps=True) == one_by_one(some)
