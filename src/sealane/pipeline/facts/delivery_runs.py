"""Deliveries by runs of offsets, and not one by one: what `gathered` and `joined` of `deliveries` say, in Arrow.

Runs of events are cut wherever another one begins or ends, so that all offsets of a piece share their whole story. A
batch of thousands that was granted and acked is one piece.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.pipeline.facts.events import HANDED_OUT, SETTLING

PLACE = ("domain", "topic", "partition", "subscription")
_TIME = pa.timestamp("us", tz="UTC")

DELIVERY_RUNS = pa.schema(
    [
        *[pa.field(name, pa.int32() if name == "partition" else pa.utf8()) for name in PLACE],
        ("first", pa.int64()),
        ("stop", pa.int64()),
        ("first_granted", _TIME),
        ("grants", pa.int32()),
        ("consumer", pa.utf8()),
        ("granted_entry", pa.int64()),
        ("cause", pa.utf8()),
        ("reason", pa.utf8()),
        ("failed_entry", pa.int64()),
        ("outcome", pa.utf8()),
        ("settled", _TIME),
        ("settled_entry", pa.int64()),
    ]
)
"""Deliveries of the offsets from `first` up to, and without, `stop`. The entries tell which of two events was the later
one."""

_GRANTS = {"granted": 1, "released": -1}
"""What goes back unhandled was no attempt."""

Ints = npt.NDArray[np.int64]


def told_by(runs: pa.Table) -> pa.Table:
    """What each run of an event says of the deliveries of its offsets; `runs` are rows of the table of history."""
    about = pc.is_in(runs["event"], pa.array([*HANDED_OUT, *SETTLING]))
    some = runs.filter(pc.and_kleene(about, pc.greater(runs["stop"], runs["first"])))
    events = some["event"].to_pylist()
    is_granted = pc.equal(some["event"], "granted")
    is_failed = pc.equal(some["event"], "failed")
    is_settled = pc.is_in(some["event"], pa.array(SETTLING))

    def where(mask: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        return pc.if_else(mask, some[name], pa.scalar(None, some[name].type))

    columns = {name: some[name] for name in (*PLACE, "first", "stop")} | {
        "first_granted": where(is_granted, "time"),
        "grants": pa.array([_GRANTS.get(event, 0) for event in events], pa.int32()),
        "consumer": where(is_granted, "consumer"),
        "granted_entry": where(is_granted, "entry"),
        "cause": where(is_failed, "cause"),
        "reason": where(is_failed, "reason"),
        "failed_entry": where(is_failed, "entry"),
        "outcome": where(is_settled, "event"),
        "settled": where(is_settled, "time"),
        "settled_entry": where(is_settled, "entry"),
    }
    return pa.table(columns).cast(DELIVERY_RUNS)


def put_together(*parts: pa.Table) -> pa.Table:
    """One row for each piece of offsets, of what the parts say of it; in the order of places and offsets."""
    told = pa.concat_tables(parts).combine_chunks()
    if not len(told):
        return told
    places, place_of = _places(told)
    pieces, first_piece, stop_piece = _pieces(place_of, told["first"].to_numpy(), told["stop"].to_numpy())
    counts = stop_piece - first_piece
    row = np.repeat(np.arange(len(told)), counts)
    within = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    piece = np.repeat(first_piece, counts) + within
    there, piece = np.unique(piece, return_inverse=True)
    story = _Story(told, row, piece, len(there))
    columns = {name: places[name].take(pa.array(pieces["place"][there])) for name in PLACE}
    columns |= {"first": pa.array(pieces["offset"][there]), "stop": pa.array(pieces["offset"][there + 1])}
    columns |= {"first_granted": story.least("first_granted"), "grants": story.sum("grants")}
    columns |= story.of_latest("granted_entry", "consumer")
    columns |= story.of_latest("failed_entry", "cause", "reason")
    # The first that settled it: whatever is told later is about a lease that was over.
    columns |= story.of_earliest("settled_entry", "outcome", "settled")
    return pa.table([columns[name] for name in DELIVERY_RUNS.names], schema=DELIVERY_RUNS)


class _Story:
    """What rows say of pieces: pair by pair, `row` is about `piece`."""

    def __init__(self, told: pa.Table, row: Ints, piece: Ints, pieces: int) -> None:
        self._told = told
        self._row = row
        self._piece = piece
        self._pieces = pieces

    def sum(self, name: str) -> pa.Array:
        values = self._told[name].to_numpy()[self._row]
        return pa.array(np.bincount(self._piece, values, self._pieces).astype(np.int32))

    def least(self, name: str) -> pa.Array:
        chosen = self._chosen(self._told[name].cast(pa.int64()), latest=False)
        return self._taken(name, chosen)

    def of_latest(self, entry: str, *names: str) -> dict[str, pa.Array]:
        chosen = self._chosen(self._told[entry], latest=True)
        return {name: self._taken(name, chosen) for name in (entry, *names)}

    def of_earliest(self, entry: str, *names: str) -> dict[str, pa.Array]:
        chosen = self._chosen(self._told[entry], latest=False)
        return {name: self._taken(name, chosen) for name in (entry, *names)}

    def _chosen(self, key: pa.ChunkedArray, *, latest: bool) -> Ints:
        """For each piece the row with the largest, or the smallest, key; -1 where none has any."""
        known = np.asarray(key.is_valid())[self._row]
        row, piece = self._row[known], self._piece[known]
        order = np.lexsort((key.fill_null(0).to_numpy()[row], piece))
        row, piece = row[order], piece[order]
        chosen = np.full(self._pieces, -1, dtype=np.int64)
        # Of an index that is there twice the last one stays.
        chosen[piece if latest else piece[::-1]] = row if latest else row[::-1]
        return chosen

    def _taken(self, name: str, rows: Ints) -> pa.Array:
        return self._told[name].combine_chunks().take(pa.array(rows, mask=rows < 0))


def _places(told: pa.Table) -> tuple[pa.Table, Ints]:
    """The places there are, and the number of each row's."""
    numbered = told.select(PLACE).append_column("row", pa.array(np.arange(len(told))))
    places = numbered.group_by(list(PLACE), use_threads=False).aggregate([("row", "min")])
    places = places.select(PLACE).sort_by([(name, "ascending") for name in PLACE]).combine_chunks()
    codes = np.zeros(len(told), dtype=np.int64)
    of_place = np.zeros(len(places), dtype=np.int64)
    for name in PLACE:
        known = pc.unique(places[name])
        width = len(known) + 1
        codes = codes * width + _index(told[name], known)
        of_place = of_place * width + _index(places[name], known)
    order = np.argsort(of_place)
    return places, order[np.searchsorted(of_place[order], codes)]


def _index(column: pa.ChunkedArray, known: pa.Array) -> Ints:
    """Null is a value too."""
    found: Ints = pc.index_in(column, value_set=known).fill_null(len(known)).to_numpy().astype(np.int64)
    return found


def _pieces(place: Ints, first: Ints, stop: Ints) -> tuple[npt.NDArray[np.void], Ints, Ints]:
    """All edges, in their order; and the numbers of the edges where each run begins and ends."""
    places = np.concatenate([place, place])
    edges = np.concatenate([first, stop])
    order = np.lexsort((edges, places))
    places, edges = places[order], edges[order]
    is_new = np.concatenate([[True], (places[1:] != places[:-1]) | (edges[1:] != edges[:-1])])
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.cumsum(is_new) - 1
    found = np.empty(int(is_new.sum()), dtype=[("place", np.int64), ("offset", np.int64)])
    found["place"], found["offset"] = places[is_new], edges[is_new]
    return found, number[: len(place)], number[len(place) :]
