"""Messages for hypothesis: rows with every field used and unused, and the batches made of them."""

from __future__ import annotations

from hypothesis import strategies as st

from sealane.message import Batch, Limits, Row, Stamp, from_rows

LIMITS = Limits()
STAMP = Stamp(created_us=1_760_000_000_123_456, random=bytes(range(16)))

times_us = st.integers(min_value=0, max_value=253_402_300_799_999_999)
stamps = st.builds(Stamp, created_us=times_us, random=st.binary(min_size=16, max_size=16))
header_text = st.text(st.characters(codec="utf-8"), max_size=12)
headers = st.dictionaries(header_text, header_text, max_size=4)
rows = st.builds(
    Row,
    payload=st.binary(max_size=40),
    key=st.none() | st.binary(max_size=8),
    headers=st.none() | headers,
    priority=st.just(5) | st.integers(min_value=1, max_value=10),
    expires_us=st.none() | times_us,
    deliver_at_us=st.none() | times_us,
    id=st.none(),
)
row_lists = st.lists(rows, min_size=1, max_size=12)


@st.composite
def given_rows(draw: st.DrawFn) -> list[Row]:
    """Rows that all have an id of their own, or none."""
    drawn = draw(row_lists)
    if draw(st.booleans()):
        return [row._replace(id=draw(st.binary(min_size=16, max_size=16))) for row in drawn]
    return drawn


@st.composite
def batches(draw: st.DrawFn) -> Batch:
    return from_rows(draw(given_rows()), draw(stamps), limits=LIMITS)


def rows_of(batch: Batch) -> list[Row]:
    """What a batch says, in Python values, ids included."""
    columns = batch.records.to_pydict()

    def to_us(column: str) -> list[int | None]:
        return batch.records.column(column).cast("int64").to_pylist()

    return [
        Row(payload, key, None if pairs is None else dict(pairs), priority, expires_us, deliver_at_us, id_)
        for payload, key, pairs, priority, expires_us, deliver_at_us, id_ in zip(
            columns["payload"],
            columns["key"],
            columns["headers"],
            columns["priority"],
            to_us("expires"),
            to_us("deliver_at"),
            columns["id"],
            strict=True,
        )
    ]


def same_message(row: Row) -> Row:
    """A row as a batch keeps it: no headers and empty headers are one thing."""
    return row._replace(headers=dict(row.headers) if row.headers else None)
