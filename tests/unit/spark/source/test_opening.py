"""End-to-end payloads on executors: opened with the job's keys, and told apart where those do not open them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.pandas.types import to_arrow_schema

from sealane.client.sync import SyncLane
from sealane.errors import InvalidArgument
from sealane.security.envelopes import PrivateKey
from sealane.spark.options.access import Access, find_access, lane_of
from sealane.spark.source.rows.fetching import Range, fetch
from sealane.spark.source.rows.opening import opening_with
from sealane.spark.source.rows.shaping import row_schema
from sealane.spark.source.spark_types import spark_schema
from sealane.spark.values import Values, values_of
from sealane.testing.node_process import NodeProcess

OURS, THEIRS = PrivateKey.generate(), PrivateKey.generate()
ORDER = values_of("json", "number BIGINT")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    with NodeProcess(tmp_path_factory.mktemp("node") / "data") as running:
        yield running


@pytest.fixture
def access(node: NodeProcess) -> Access:
    return find_access({"url": node.url})


@pytest.fixture
def lane(access: Access) -> SyncLane:
    return lane_of(access)


def payloads(first: int, count: int) -> list[bytes]:
    return [b'{"number": %d}' % number for number in range(first, first + count)]


def rows(access: Access, topic: str, *keys: PrivateKey, values: Values | None = None) -> list[dict[str, Any]]:
    (log,) = lane_of(access).logs(topic)
    everything = Range(log.name, log.incarnation, 0, log.partitions[0].start, log.partitions[0].end)
    found = []
    for batch in fetch(access, everything, keys=[key.pem() for key in keys], values=values):
        batch.validate(full=True)
        assert batch.schema.equals(row_schema(values, opens=bool(keys)))
        found += batch.to_pylist()
    return found


def test_without_keys_payloads_are_ciphertext_and_there_is_no_further_column(access: Access, lane: SyncLane) -> None:
    lane.publish_many("unread", payloads(0, 3), seal_for=OURS.public)
    found = rows(access, "unread")
    assert "_unopened" not in found[0]
    assert not {row["payload"] for row in found} & set(payloads(0, 3))


def test_with_the_key_payloads_are_as_they_were_sent(access: Access, lane: SyncLane) -> None:
    for first in (0, 40, 80):  # Each batch has an envelope of its own.
        lane.publish_many("opened", payloads(first, 40), seal_for=OURS.public)
    lane.publish("opened", payloads(120, 1)[0], key=b"k", priority=9, seal_for=[OURS.public, THEIRS.public])
    found = rows(access, "opened", OURS)
    assert [row["payload"] for row in found] == payloads(0, 121)
    assert {row["_unopened"] for row in found} == {None}
    assert found[-1]["key"] == b"k"


def test_what_was_not_sealed_comes_as_it_is(access: Access, lane: SyncLane) -> None:
    lane.publish_many("mixed", payloads(0, 2))
    lane.publish_many("mixed", payloads(2, 2), seal_for=OURS.public)
    found = rows(access, "mixed", OURS)
    assert [row["payload"] for row in found] == payloads(0, 4)
    assert [row["_unopened"] for row in found] == [None] * 4


def test_what_no_key_opens_stays_ciphertext_and_says_why(access: Access, lane: SyncLane) -> None:
    lane.publish_many("others", payloads(0, 2), seal_for=OURS.public)
    lane.publish_many("others", payloads(2, 2), seal_for=THEIRS.public)
    lane.publish_many("others", payloads(4, 1))
    sealed = [row["payload"] for row in rows(access, "others")]
    found = rows(access, "others", OURS)
    assert [row["payload"] for row in found] == [*payloads(0, 2), *sealed[2:4], *payloads(4, 1)]
    assert [row["_unopened"] is None for row in found] == [True, True, False, False, True]
    assert "not sealed for any of the keys" in found[2]["_unopened"]
    assert [row["payload"] for row in rows(access, "others", OURS, THEIRS)] == payloads(0, 5)


def test_typed_values_are_read_from_opened_payloads(access: Access, lane: SyncLane) -> None:
    lane.publish_many("typed", [*payloads(0, 2), b"no json"], seal_for=OURS.public)
    found = rows(access, "typed", OURS, values=ORDER)
    assert [row["value"] for row in found] == [{"number": 0}, {"number": 1}, None]
    assert [row["_corrupt"] for row in found] == [None, None, b"no json"]


def test_ciphertext_is_never_taken_for_a_value(access: Access, lane: SyncLane) -> None:
    # Any 28 bytes are a value of this schema, and an empty payload has 28 when it is sealed.
    field = {"name": "x", "type": {"type": "fixed", "name": "Bytes28", "size": 28}}
    anything = values_of("avro", json.dumps({"type": "record", "name": "Anything", "fields": [field]}))
    lane.publish_many("chance", [bytes(28)], seal_for=OURS.public)
    lane.publish_many("chance", [b""], seal_for=THEIRS.public)
    sealed = rows(access, "chance", values=anything)[1]
    assert sealed["value"] == {"x": sealed["payload"]}
    found = rows(access, "chance", OURS, values=anything)
    assert [row["value"] for row in found] == [{"x": bytes(28)}, None]
    assert [row["_corrupt"] for row in found] == [None, sealed["payload"]]


@pytest.mark.parametrize("opens", [False, True])
@pytest.mark.parametrize("values", [None, ORDER])
def test_the_columns_are_those_that_spark_expects(values: Values | None, opens: bool) -> None:
    schema = spark_schema(values, opens=opens)
    assert to_arrow_schema(schema, timezone="UTC").equals(row_schema(values, opens=opens))
    further = schema.fieldNames()[13:]
    assert further == [*(["value", "_corrupt"] if values else []), *(["_unopened"] if opens else [])]


def test_keys_are_kept_for_the_next_task_and_never_shown() -> None:
    keys = (OURS.pem(),)
    assert opening_with(keys) is opening_with(keys)
    assert OURS.public.fingerprint in repr(opening_with(keys))
    assert OURS.pem() not in repr(opening_with(keys))


def test_what_is_no_key_is_refused_and_not_repeated() -> None:
    with pytest.raises(InvalidArgument) as refused:
        opening_with(("s3cret",))
    assert "s3cret" not in str(refused.value)
