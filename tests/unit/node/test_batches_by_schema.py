"""Batches that are joined when they are stored are cut where the id of their schema changes."""

from __future__ import annotations

import pytest

from sealane.delivery.partition import Partition, Publication
from sealane.message import Batch, BatchMeta, Limits, Row, Stamp, from_rows
from sealane.message.concat import concat
from sealane.node.commits import by_schema


def batch_of(schema_id: int | None, *ids: int) -> Batch:
    rows = [Row(b"%d" % number, id=number.to_bytes(16, "big")) for number in ids]
    batch = from_rows(rows, Stamp(1, bytes(16)), limits=Limits())
    return batch.with_meta(BatchMeta(given_ids=True, schema_id=schema_id))


def planned(partition: Partition, *batches: Batch) -> Publication:
    return partition.publish(concat(batches), now_us=1)


def stored(publication: Publication, *batches: Batch) -> list[tuple[int | None, list[bytes]]]:
    return [(part.meta.schema_id, part.payloads()) for part in by_schema(publication, batches)]


def test_batches_of_one_schema_stay_together() -> None:
    batches = batch_of(1, 1, 2), batch_of(1, 3)
    publication = planned(Partition("t"), *batches)
    assert by_schema(publication, batches) == [publication.batch]


def test_each_message_has_the_id_of_its_own_batch() -> None:
    batches = batch_of(1, 1, 2), batch_of(2, 3), batch_of(None, 4, 5), batch_of(1, 6)
    assert stored(planned(Partition("t"), *batches), *batches) == [
        (1, [b"1", b"2"]),
        (2, [b"3"]),
        (None, [b"4", b"5"]),
        (1, [b"6"]),
    ]


def test_what_was_there_before_or_comes_twice_is_left_out_where_it_is() -> None:
    partition = Partition("t")
    for event in planned(partition, batch_of(None, 2, 5)).events:
        partition.apply(event)
    batches = batch_of(1, 1, 2), batch_of(2, 3, 1), batch_of(3, 5), batch_of(1, 4, 3)
    assert stored(planned(partition, *batches), *batches) == [(1, [b"1"]), (2, [b"3"]), (1, [b"4"])]


@pytest.mark.parametrize("ids", [(1, 1), (1, 2)])
def test_neighbours_of_one_schema_are_one_batch_again_only_if_all_are(ids: tuple[int, int]) -> None:
    batches = batch_of(ids[0], 1), batch_of(ids[1], 2)
    assert len(by_schema(planned(Partition("t"), *batches), batches)) == len(set(ids))
