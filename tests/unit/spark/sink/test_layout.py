"""DataFrames become messages: columns, types, routes."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.errors import InvalidMessage
from sealane.message import Limits, Stamp, from_arrow
from sealane.spark.errors import InvalidOption
from sealane.spark.sink import routing
from sealane.spark.sink.layout import Layout, layout_of

SOURCE = [
    ("id", "binary"),
    ("key", "binary"),
    ("payload", "binary"),
    ("headers", "map<string,string>"),
    ("priority", "tinyint"),
    ("created", "timestamp"),
    ("expires", "timestamp"),
    ("deliver_at", "timestamp"),
    ("producer", "binary"),
    ("domain", "string"),
    ("topic", "string"),
    ("partition", "int"),
    ("offset", "bigint"),
]
STAMP = Stamp(1_700_000_000_000_000, bytes(16))


def layout(
    fields: list[tuple[str, str]], *, columns: Mapping[str, str] | None = None, topic: str | None = "orders"
) -> Layout:
    return layout_of(fields, columns=columns or {}, topic=topic)


def written(made: Layout, *batches: pa.RecordBatch) -> list[tuple[str, pa.RecordBatch]]:
    return list(made.messages(iter(batches)))


def refusal(fields: list[tuple[str, str]], **options: object) -> str:
    with pytest.raises(InvalidOption) as refused:
        layout(fields, **options)  # type: ignore[arg-type]
    return str(refused.value)


# --- which column is what ---------------------------------------------------------------------------------------------


def test_only_the_payload_has_to_be_there() -> None:
    batch = pa.RecordBatch.from_pydict({"payload": [b"a", b"b"]})
    ((topic, rows),) = written(layout([("payload", "binary")]), batch)
    assert topic == "orders"
    assert rows.equals(batch)


def test_columns_are_found_by_name_or_as_the_option_says() -> None:
    made = layout(
        [("customer", "string"), ("priority", "int"), ("body", "string")],
        columns={"payload": "body", "key": "customer"},
    )
    batch = pa.RecordBatch.from_pydict({"customer": ["c"], "priority": [7], "body": ["text"]})
    ((_, rows),) = written(made, batch)
    (message,) = from_arrow(rows, STAMP, limits=Limits())
    assert message.records.select(["key", "payload", "priority"]).to_pylist() == [
        {"key": b"c", "payload": b"text", "priority": 7}
    ]


def test_what_was_read_from_a_topic_is_written_to_another_as_it_is() -> None:
    made = layout(SOURCE, topic="copy")
    assert made.topic_place is None
    assert list(made.columns) == ["id", "key", "payload", "headers", "priority", "created", "expires", "deliver_at"]


def test_a_column_that_is_no_part_of_a_message_is_refused_with_what_to_do() -> None:
    problem = refusal([("payload", "binary"), ("amount", "int")])
    assert "'amount'" in problem
    assert "df.drop('amount')" in problem
    assert "columns='payload=amount'" in problem


def test_values_that_were_read_out_of_the_payload_are_not_dropped_silently() -> None:
    problem = refusal([*SOURCE, ("value", "struct<a:int>"), ("_corrupt", "binary")])
    assert "to_json" in problem
    assert "df.drop('value', '_corrupt')" in problem


def test_a_column_of_the_source_can_be_given_another_part() -> None:
    made = layout([("offset", "string"), ("value", "binary")], columns={"payload": "value", "key": "offset"})
    assert made.columns == {"key": 0, "payload": 1}


@pytest.mark.parametrize(
    ("fields", "columns", "told"),
    [
        ([("key", "binary")], {}, "no column is the payload"),
        ([("payload", "binary")], {"body": "payload"}, "a message has no 'body'"),
        ([("payload", "binary")], {"key": "customer"}, "no column 'customer'"),
        ([("payload", "binary"), ("body", "binary")], {"payload": "body"}, "'payload'"),
        ([("payload", "binary"), ("payload", "binary")], {}, "2 columns 'payload'"),
        ([("payload", "void")], {}, "is void"),
        ([("payload", "struct<a:int>")], {}, "struct<a:int>"),
        ([("payload", "binary"), ("key", "int")], {}, "binary or string"),
        ([("payload", "binary"), ("headers", "map<string,int>")], {}, "map<string,string>"),
        ([("payload", "binary"), ("priority", "double")], {}, "tinyint or smallint or int or bigint"),
        ([("payload", "binary"), ("expires", "timestamp_ntz")], {}, "timestamp_ntz"),
    ],
)
def test_what_cannot_be_written_is_refused_before_any_job(
    fields: list[tuple[str, str]], columns: dict[str, str], told: str
) -> None:
    assert told in refusal(fields, columns=columns)


def test_a_column_of_nothing_but_nulls_is_as_if_it_were_not_there() -> None:
    assert layout([("payload", "binary"), ("key", "void")]).columns == {"payload": 0}


def test_spark_s_other_strings_are_strings() -> None:
    assert layout([("payload", "string collate UTF8_LCASE")]).columns == {"payload": 0}


def test_every_type_that_is_taken_becomes_a_message() -> None:
    moment = datetime(2030, 1, 1, tzinfo=UTC)
    batch = pa.RecordBatch.from_arrays(
        [
            pa.array(["{}"], pa.large_string()),
            pa.array([[("region", "eu")]], pa.map_(pa.string(), pa.string())),
            pa.array([10], pa.int64()),
            pa.array([moment], pa.timestamp("us", tz="Europe/Zurich")),
        ],
        names=["payload", "headers", "priority", "expires"],
    )
    fields = [
        ("payload", "string"), ("headers", "map<string,string>"), ("priority", "bigint"), ("expires", "timestamp")
    ]  # fmt: skip
    ((_, rows),) = written(layout(fields), batch)
    (message,) = from_arrow(rows, STAMP, limits=Limits())
    (row,) = message.records.select(["payload", "headers", "priority", "expires"]).to_pylist()
    assert row == {"payload": b"{}", "headers": [("region", "eu")], "priority": 10, "expires": moment}


# --- ids --------------------------------------------------------------------------------------------------------------


def ids(column: pa.Array) -> list[bytes]:
    kind = "binary" if pa.types.is_binary(column.type) else "string"
    batch = pa.RecordBatch.from_arrays([column, pa.array([b""] * len(column))], names=["id", "payload"])
    return [
        value
        for _, rows in written(layout([("id", kind), ("payload", "binary")]), batch)
        for value in rows.column("id").to_pylist()
    ]


@given(st.lists(st.uuids(), min_size=1), st.data())
def test_ids_are_bytes_or_uuids_as_text_in_any_spelling(given_ids: list[uuid.UUID], data: st.DataObject) -> None:
    def spelt(id: uuid.UUID) -> str:
        text = data.draw(st.sampled_from([str(id), id.hex]))
        return text.upper() if data.draw(st.booleans()) else text

    expected = [id.bytes for id in given_ids]
    assert ids(pa.array(expected, pa.binary())) == expected
    texts = pa.array([spelt(id) for id in given_ids])
    skipped = data.draw(st.integers(0, len(given_ids) - 1))
    assert ids(texts.slice(skipped)) == expected[skipped:]


@pytest.mark.parametrize(
    ("column", "told"),
    [
        (pa.array([b"short"]), "5 bytes"),
        (pa.array([str(uuid.UUID(int=1)), "not-a-uuid"]), "hexadecimal digits"),
        (pa.array([str(uuid.UUID(int=1)), "g" * 32]), repr("g" * 32)),
        (pa.array([bytes(16), None]), "null in 1 of 2 rows"),
    ],
)
def test_an_id_that_is_none_is_refused(column: pa.Array, told: str) -> None:
    with pytest.raises(InvalidMessage, match=told) as refused:
        ids(column)
    assert refused.value.field == "id"


# --- routes -----------------------------------------------------------------------------------------------------------

ROUTED = [("topic", "string"), ("payload", "binary")]


def test_a_topic_column_sends_each_row_where_it_says_in_order() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["b", "a", "b", "a"], "payload": [b"0", b"1", b"2", b"3"]})
    made = written(layout(ROUTED, topic=None), batch)
    assert {topic: rows.column("payload").to_pylist() for topic, rows in made} == {"b": [b"0", b"2"], "a": [b"1", b"3"]}


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.binary(max_size=4)), max_size=20), max_size=4),
    st.sampled_from([1, 100, 1 << 20]),
)
def test_every_row_goes_to_its_topic_once_in_its_order(parts: list[list[tuple[str, bytes]]], gather_bytes: int) -> None:
    batches = [
        pa.RecordBatch.from_arrays(
            [
                pa.array([topic for topic, _ in part], pa.string()),
                pa.array([payload for _, payload in part], pa.binary()),
                pa.array([[("n", topic)] for topic, _ in part], pa.map_(pa.string(), pa.string())),
            ],
            names=["topic", "payload", "headers"],
        )
        for part in parts
    ]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(routing, "GATHER_BYTES", gather_bytes)
        made = written(layout([*ROUTED, ("headers", "map<string,string>")], topic=None), *batches)
    for wanted in "abc":
        got = [row for topic, rows in made if topic == wanted for row in rows.to_pylist()]
        expected = [payload for part in parts for topic, payload in part if topic == wanted]
        assert [row["payload"] for row in got] == expected
        assert all(row["headers"] == [("n", wanted)] for row in got)


def test_the_option_wins_over_a_column_that_the_source_made() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["orders"], "payload": [b""]})
    assert [topic for topic, _ in written(layout(ROUTED, topic="copy"), batch)] == ["copy"]


def test_a_named_topic_column_wins_over_the_option_which_is_for_nulls() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", None], "payload": [b"0", b"1"]})
    made = written(layout(ROUTED, columns={"topic": "topic"}, topic="rest"), batch)
    assert [(topic, rows.column("payload").to_pylist()) for topic, rows in made] == [("a", [b"0"]), ("rest", [b"1"])]


def test_a_domain_beside_the_topic_is_the_topic_s_domain() -> None:
    batch = pa.RecordBatch.from_pydict(
        {"domain": ["shop", None], "topic": ["orders", "default/bills"], "payload": [b"", b""]}
    )
    made = written(layout([("domain", "string"), *ROUTED], topic=None), batch)
    assert [topic for topic, _ in made] == ["shop/orders", "default/bills"]


def test_a_named_topic_column_has_nothing_to_do_with_the_domain_that_rows_came_from() -> None:
    batch = pa.RecordBatch.from_pydict({"domain": ["shop"], "to": ["bills"], "payload": [b""]})
    fields = [("domain", "string"), ("to", "string"), ("payload", "binary")]
    assert [topic for topic, _ in written(layout(fields, columns={"topic": "to"}, topic=None), batch)] == ["bills"]


def test_a_row_that_names_no_topic_is_refused() -> None:
    batch = pa.RecordBatch.from_pydict({"topic": ["a", None], "payload": [b"0", b"1"]})
    with pytest.raises(InvalidMessage, match=r"null in 1 of 2 rows.*columns='topic=topic'"):
        written(layout(ROUTED, topic=None), batch)


def test_rows_have_to_go_somewhere() -> None:
    assert "a column 'topic'" in refusal([("payload", "binary")], topic=None)
