"""What is taken for a phone number and what is not, and that a number has one hash however it is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.pipeline.clean.field_names import says_phone
from sealane.pipeline.clean.numbers import Numbers
from sealane.pipeline.clean.phone_numbers import is_international, is_number, is_number_by_name, normalised
from sealane.pipeline.secrets.lake_keys import LakeKeys

INTERNATIONAL = [
    *("+491701234567", "+49 170 1234567", "+49 (0)170 123-4567", "tel:+49-170-1234567", "0049 170 1234567"),
    *("+1 (415) 555-2671", "+1.4155552671", "+44 20 7946 0958", "+1234567", "+123456789012345", "＋49 170 1234567"),
    *("+49\u00a0170\u20111234567",),
]
NATIONAL = [
    *("0170-1234567", "0170 1234567", "(030) 123456", "030/123456", "030 - 123456", "06 12 34 56 78"),
    *("(415) 555-2671", "415-555-2671", "020 7946 0958", "07911 123456"),
]
OTHERS = [
    *("123456789", "01701234567", "4711", "+123456", "+1234567890123456", "ORD-2026-000123", "302-1234567-1234567"),
    *("2026-01-31", "01-02-2026", "01/02/2026", "01.02.2026", "2026 01 31", "12:30:45", "+1234567.89", "-1234567"),
    *("192.168.100.200", "01-11-22-33-44-55", "0001-0002-0003", "3.1415926", "978-3-16-148410-0", "DE89 3704 0044"),
    *("4111 1111 1111 1111", "", "+", "()", "call +49 170 1234567", "tel:" + "a1" * 32),
]


@pytest.mark.parametrize("text", INTERNATIONAL)
def test_a_number_with_its_country_is_one_everywhere(text: str) -> None:
    assert is_international(text)
    assert is_number(text)
    assert is_number_by_name(text)


@pytest.mark.parametrize("text", NATIONAL)
def test_a_national_writing_is_a_number_and_has_no_country(text: str) -> None:
    assert is_number(text)
    assert not is_international(text)
    assert normalised(text).isdigit()


@pytest.mark.parametrize("text", OTHERS)
def test_other_numbers_are_left_alone(text: str) -> None:
    assert not is_number(text)


@pytest.mark.parametrize("text", ["01701234567", "491701234567", "1234567", "0170.123.4567"])
def test_where_a_name_says_so_digits_are_enough(text: str) -> None:
    assert is_number_by_name(text)


@pytest.mark.parametrize("text", ["123456", "1234567890123456", "2026-01-31", "31.01.2026", "Galaxy 12345678", "home"])
def test_a_name_does_not_make_a_number_of_anything(text: str) -> None:
    assert not is_number_by_name(text)


@pytest.mark.parametrize(
    "text",
    [
        "+491701234567",
        "+49 170 1234567",
        "+49 (0)170/1234567",
        "0049 170 1234567",
        "00491701234567",
        " tel:+49-170-1234567 ",
    ],
)
def test_writings_of_one_number_are_the_same(text: str) -> None:
    assert normalised(text) == "+491701234567"


@pytest.mark.parametrize(("text", "same"), [("0170-1234567", "01701234567"), ("(030) 123 456", "030123456")])
def test_without_a_country_digits_stay_as_they_are(text: str, same: str) -> None:
    assert normalised(text) == same


@given(st.text(alphabet="123456789", min_size=1, max_size=1), st.text(alphabet="0123456789", min_size=0, max_size=20))
def test_with_a_plus_it_is_the_count_of_digits_that_decides(first: str, rest: str) -> None:
    assert is_international(f"+{first}{rest}") == (7 <= 1 + len(rest) <= 15)


@given(st.text(alphabet="0123456789", max_size=20))
def test_digits_alone_are_never_a_number(digits: str) -> None:
    assert not is_number(digits)


@given(st.integers(10**6, 10**15 - 1), st.data())
def test_separators_change_no_hash(number: int, data: st.DataObject) -> None:
    digits = str(number)
    separated = "".join(digit + data.draw(st.sampled_from(["", " ", "-", "."])) for digit in digits[:-1]) + digits[-1]
    assert normalised(f"+{separated}") == f"+{digits}"


@given(st.text(max_size=60))
def test_any_text_is_judged_and_what_is_hashed_once_is_not_hashed_again(text: str) -> None:
    keys = LakeKeys({1: bytes(32)}, bytes(32), Path("lake.keys"))
    is_number_by_name(text)
    assert not is_number(keys.hash_number("shop", text))
    assert not is_number_by_name(keys.hash_number("shop", text))


@pytest.mark.parametrize(
    "name",
    [
        "phone",
        "customerPhone",
        "PHONE",
        "x-mobile-number",
        "tel_2",
        "homePhoneNumber",
        "phonenumber",
        "MSISDN",
        "userMSISDN",
    ],
)
def test_names_that_say_phone(name: str) -> None:
    assert says_phone(name)


@pytest.mark.parametrize("name", ["order", "hotel", "number", "telemetry", "automobile", "telegram", "microphone", ""])
def test_names_that_do_not(name: str) -> None:
    assert not says_phone(name)


# --- in messages ------------------------------------------------------------------------------------------------------


@pytest.fixture
def numbers() -> Numbers:
    return Numbers(LakeKeys({1: bytes(32)}, bytes(32), Path("lake.keys")), "shop")


def texts(value: Any) -> Iterator[str]:
    match value:
        case dict():
            for name, each in value.items():
                yield name
                yield from texts(each)
        case list():
            for each in value:
                yield from texts(each)
        case _:
            yield str(value)


def test_a_document_loses_its_numbers_and_nothing_else(numbers: Numbers) -> None:
    hashed = numbers.hashed("+491701234567")
    document = {
        "phone": "+49 170 1234567",
        "contact": {"mobile": {"kind": "work", "number": "00491701234567"}, "id": "123456789"},
        "phones": ["+49-170-1234567", "none"],
        "note": "+491701234567",
        "msisdn": 491701234567,
        "+49 170 1234567": True,
        "order": "0170-1234567",
        "amount": 1234567,
    }
    cleaned = numbers.in_document(document)
    assert cleaned == {
        "phone": hashed,
        "contact": {"mobile": {"kind": "work", "number": hashed}, "id": "123456789"},
        "phones": [hashed, "none"],
        "note": hashed,
        "msisdn": numbers.hashed("491701234567"),
        hashed: True,
        "order": "0170-1234567",
        "amount": 1234567,
    }


def test_a_document_may_be_deeper_than_the_stack(numbers: Numbers) -> None:
    document: Any = "+491701234567"
    for _ in range(5_000):
        document = [document]
    found = numbers.in_document(document)
    while isinstance(found, list):
        (found,) = found
    assert found == numbers.hashed("+491701234567")


def test_keys_and_headers_that_are_numbers_are_hashed(numbers: Numbers) -> None:
    hashed = numbers.hashed("0170-1234567")
    assert numbers.in_bytes(b"0170-1234567") == hashed.encode()
    assert numbers.in_bytes(b"order-17") == b"order-17"
    assert numbers.in_bytes(b"\xff+491701234567") == b"\xff+491701234567"
    headers = [("from", "0170 1234567"), ("x-phone", "01701234567"), ("trace", "01701234567"), ("empty", None)]
    assert numbers.in_headers(headers) == [
        ("from", hashed),
        ("x-phone", hashed),
        ("trace", "01701234567"),
        ("empty", None),
    ]
