"""What a broadcast consumer remembers for itself, since its place in the node ends with its connection."""

from __future__ import annotations

from pyroaring import BitMap64

from sealane.client.remote.broadcasting import BroadcastPlace
from sealane.message import Limits, Stamp, from_payloads
from sealane.node import Delivery, Part


def delivery(*runs: range, partition: int = 0) -> Delivery:
    parts = tuple(Part(run, from_payloads([b"x"] * len(run), Stamp(1, bytes(16)), limits=Limits())) for run in runs)
    return Delivery("default/news", partition, "screens", 1, 0, parts, ())


def split(place: BroadcastPlace, *runs: range) -> tuple[list[int], list[int]]:
    parts, known = place.split(delivery(*runs))
    return [int(offset) for part in parts for offset in part.offsets], list(known)


def test_it_begins_again_at_what_is_not_settled_and_leaves_out_what_is() -> None:
    place = BroadcastPlace()
    place.began({0: 10, 1: 0})
    place.settle(0, BitMap64([10, 11, 13]))

    assert place.start() == {0: 12, 1: 0}
    assert split(place, range(12, 14), range(14, 16)) == ([12, 14, 15], [13])
    assert split(place, range(13, 14)) == ([], [13])


def test_what_is_new_is_handed_on_as_it_came() -> None:
    place = BroadcastPlace()
    place.began({0: 10})
    came = delivery(range(10, 20))
    assert place.split(came)[0] is not None
    assert place.split(came)[0][0] is came.parts[0]


def test_a_partition_that_was_added_is_read_from_where_the_node_says() -> None:
    place = BroadcastPlace()
    place.began({0: 5})
    place.began({0: 5, 1: 3})
    assert place.start() == {0: 5, 1: 3}


def test_a_log_that_is_shorter_than_what_was_read_of_it_is_another_one() -> None:
    place = BroadcastPlace()
    place.began({0: 0})
    place.settle(0, BitMap64(range(100)))
    place.began({0: 7})

    assert place.start() == {0: 7}
    assert split(place, range(7, 9)) == ([7, 8], [])


def test_a_log_that_was_trimmed_meanwhile_changes_nothing() -> None:
    place = BroadcastPlace()
    place.began({0: 0})
    place.settle(0, BitMap64([0, 50]))
    place.began({0: 20})
    assert split(place, range(49, 52)) == ([49, 51], [50])
