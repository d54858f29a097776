from __future__ import annotations

import datetime
import re

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sealane.spark.values.spark_type import TIMESTAMP, TIMESTAMP_NTZ
from sealane.spark.values.timestamps import LOCAL, ZONED, timestamps_of

NOON = datetime.datetime(2024, 5, 6, 12, 0, 0, 0, datetime.UTC)

two = st.integers(0, 99).map("{:02d}".format) | st.sampled_from(["00", "12", "23", "24", "29", "30", "31", "59", "60"])
years = st.integers(0, 9999).map("{:04d}".format) | st.sampled_from(["1900", "2000", "2023", "2024"])
zones = st.sampled_from(["", "Z", "z", "+02", "-0230", "+02:30", "+24:00", "-23:59", "+1", "+02:", " Z"])
digits = st.sampled_from(["", ".", ".5", ".123456", ".1234567", ".123456789"])
texts = st.one_of(
    st.builds("{}-{}-{}".format, years, two, two),
    st.builds("{}-{}-{}{}{}{}".format, years, two, two, st.sampled_from(["T", " ", "t"]), two, zones),
    st.builds("{}-{}-{}T{}:{}{}".format, years, two, two, two, two, zones),
    st.builds("{}-{}-{}T{}:{}:{}{}{}".format, years, two, two, two, two, two, digits, zones),
    st.text("0123456789-:TZ. +", max_size=30),
)


def casts(text: str, type: pa.TimestampType) -> bool:
    try:
        pa.array([text]).cast(type)
    except pa.ArrowInvalid:
        return False
    return True


@given(texts)
@settings(max_examples=800, deadline=None)
@example("2024-05-06T12:00:00Z\n")
@example("0000-02-29")
def test_a_text_has_the_form_of_a_time_exactly_if_arrow_takes_it(text: str) -> None:
    fine = re.sub(r"(\.\d{6})\d+", r"\1", text)

    for pattern, type in ((LOCAL, TIMESTAMP_NTZ), (ZONED, TIMESTAMP)):
        matches = pa.compute.match_substring_regex(pa.array([text]), pattern)[0].as_py()
        assert matches == casts(fine, type)


@pytest.mark.parametrize(
    "text",
    [
        *("2024-05-06T12:00:00Z", "2024-05-06 12:00:00Z", "2024-05-06T12:00:00", "2024-05-06T14:00:00+02:00"),
        *("2024-05-06T09:30-0230", "2024-05-06T12", "2024-05-06T12:00:00.000000999Z", "2024-05-06T12:00:00.0000009"),
    ],
)
def test_a_time_is_read_with_or_without_zone_and_however_fine(text: str) -> None:
    # What is beside it makes the column take the longer way.
    found, bad = timestamps_of(pa.array([text, None, "never"]), TIMESTAMP)

    assert found.to_pylist() == [NOON, None, None]
    assert bad is not None
    assert bad.tolist() == [False, False, True]
    assert timestamps_of(pa.array([text]), TIMESTAMP)[0].to_pylist() == [NOON]


def test_a_time_of_no_zone_may_say_none() -> None:
    found, bad = timestamps_of(pa.array(["2024-05-06T12:00:00", "2024-05-06", "2024-05-06T12:00:00Z"]), TIMESTAMP_NTZ)

    assert found.type == TIMESTAMP_NTZ
    assert found.to_pylist() == [NOON.replace(tzinfo=None), datetime.datetime(2024, 5, 6), None]  # noqa: DTZ001
    assert bad is not None
    assert np.flatnonzero(bad).tolist() == [2]
