"""The backlog of a key-shared subscription: one lane a key, at most one consumer in a lane at a time.

The order of a key survives redelivery: while one of its messages waits for a retry nothing later of its key is granted,
and what was granted beyond it comes back. Messages without a key have no order to keep and go to whoever asks.
Unlike the other modes this one keeps an object a key and an entry a message, for what is scanned and not settled.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, field

from pyroaring import BitMap64

from sealane.delivery.offsets import span, take_first


@dataclass(slots=True, eq=False)
class _Lane:
    key: bytes
    ready: BitMap64 = field(default_factory=BitMap64)
    granted: BitMap64 = field(default_factory=BitMap64)
    parked: BitMap64 = field(default_factory=BitMap64)
    holder: str | None = None

    @property
    def open(self) -> bool:
        """Something can be granted: nothing earlier of the key waits for a retry or a delay."""
        return bool(self.ready) and (not self.parked or self.ready.min() < self.parked.min())

    def take_first(self, count: int) -> BitMap64:
        if not self.parked:
            return take_first(self.ready, count)
        first = take_first(self.ready & span(0, self.parked.min()), count)
        self.ready -= first
        return first


class KeyedBacklog:
    """See the module's text; the interface is `Backlog`."""

    __slots__ = ("_by_offset", "_free", "_held", "_keyless", "_lanes", "_ready")

    def __init__(self) -> None:
        self._lanes: dict[bytes, _Lane] = {}
        self._by_offset: dict[int, _Lane] = {}
        self._keyless = BitMap64()
        self._ready = BitMap64()
        """What is ready in any lane."""
        # Lanes that can be granted from, in the order in which they became so: free ones, and those of each holder.
        # Ordered dictionaries, since finding the first entry of a plain one walks over all that were removed before it.
        self._free: OrderedDict[_Lane, None] = OrderedDict()
        self._held: dict[str, OrderedDict[_Lane, None]] = {}

    def learn(self, key: bytes, offsets: BitMap64) -> None:
        """These offsets, found by a scan, are of this key; `put_back` or `park` says next where they stand."""
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = _Lane(key)
        self._by_offset.update(dict.fromkeys(offsets, lane))

    def take(self, consumer: str, count: int) -> list[BitMap64]:
        taken = BitMap64()
        while count > 0 and (held := self._held.get(consumer)):
            count -= self._grant_from(next(iter(held)), consumer, count, taken)
        while count > 0 and self._free:
            count -= self._grant_from(next(iter(self._free)), consumer, count, taken)
        if count > 0 and self._keyless:
            taken |= take_first(self._keyless, count)
        return [taken] if taken else []

    def _grant_from(self, lane: _Lane, consumer: str, count: int, taken: BitMap64) -> int:
        first = lane.take_first(count)
        lane.granted |= first
        lane.holder = consumer
        self._ready -= first
        self._place(lane)
        taken |= first
        return len(first)

    def put_back(self, offsets: BitMap64) -> None:
        for lane, these in self._by_lane(offsets):
            if lane is None:
                self._keyless |= these
                continue
            lane.ready |= these
            lane.granted -= these
            lane.parked -= these
            self._ready |= these
            self._place(lane)

    def park(self, offsets: BitMap64) -> None:
        self._ready -= offsets
        for lane, these in self._by_lane(offsets):
            if lane is not None:
                lane.parked |= these
                lane.ready -= these
                lane.granted -= these
                self._place(lane)

    def forget(self, offsets: BitMap64) -> None:
        self._keyless -= offsets
        self._ready -= offsets
        if len(offsets) > len(self._by_offset):
            # A long run of which little is known here, such as one that was lost or is behind a seek.
            offsets = BitMap64([offset for offset in self._by_offset if offset in offsets])
        for lane, these in self._by_lane(offsets):
            if lane is None:
                continue
            for offset in these:
                del self._by_offset[offset]
            lane.ready -= these
            lane.granted -= these
            lane.parked -= these
            self._place(lane)
            if not (lane.ready or lane.granted or lane.parked):
                del self._lanes[lane.key]

    def hold(self, consumer: str, offsets: BitMap64) -> None:
        """These, found by a scan, are under a lease that outlived a restart."""
        for lane, these in self._by_lane(offsets):
            if lane is not None:
                lane.granted |= these
                if lane.holder is None:
                    self._free.pop(lane, None)
                    lane.holder = consumer
                self._place(lane)

    def later_of_key(self, offsets: BitMap64) -> BitMap64:
        later = BitMap64()
        for lane, these in self._by_lane(offsets):
            if lane is not None:
                beyond = lane.granted.copy()
                beyond.remove_range(0, these.min() + 1)
                later |= beyond
        later -= offsets
        return later

    def has_ready(self, consumer: str) -> bool:
        return bool(self._free or self._keyless or self._held.get(consumer))

    def has_less_urgent(self) -> bool:
        """Keys are served in their order, whatever the priority."""
        return False

    def ready_count(self) -> int:
        return len(self._keyless) + len(self._ready)

    def clear(self) -> None:
        self._lanes.clear()
        self._by_offset.clear()
        self._keyless.clear()
        self._ready.clear()
        self._free.clear()
        self._held.clear()

    def check(self) -> BitMap64:
        known = BitMap64()
        for key, lane in self._lanes.items():
            everything = lane.ready | lane.granted | lane.parked
            assert len(everything) == len(lane.ready) + len(lane.granted) + len(lane.parked), f"{key!r}: in two places"
            assert everything, f"the empty lane {key!r} is kept"
            assert all(self._by_offset[offset] is lane for offset in everything), f"{key!r}: in another lane too"
            assert (lane.holder is None) == (not lane.granted), f"{key!r}: held without a grant, or granted to nobody"
            assert (lane in self._free) == (lane.open and lane.holder is None), f"{key!r}: free by mistake"
            for holder, lanes in self._held.items():
                assert (lane in lanes) == (lane.open and lane.holder == holder), f"{key!r}: held by mistake"
            known |= everything
        assert len(known) == len(self._by_offset), "an offset is remembered and in no lane"
        assert all(self._held.values()), "a holder of nothing is kept"
        assert self._ready == BitMap64.union(BitMap64(), *(lane.ready for lane in self._lanes.values()))
        return self._keyless | self._ready

    def _by_lane(self, offsets: BitMap64) -> list[tuple[_Lane | None, BitMap64]]:
        if not self._by_offset:
            return [(None, offsets)] if offsets else []
        found: dict[_Lane | None, BitMap64] = {}
        for offset in offsets:
            lane = self._by_offset.get(offset)
            these = found.get(lane)
            if these is None:
                these = found[lane] = BitMap64()
            these.add(offset)
        return list(found.items())

    def _place(self, lane: _Lane) -> None:
        """Put the lane in the one queue that it belongs to now."""
        holder = lane.holder
        if holder is not None and not lane.granted:
            self._leave(holder, lane)
            holder = lane.holder = None
        if holder is not None:
            self._free.pop(lane, None)
            if lane.open:
                self._held.setdefault(holder, OrderedDict()).setdefault(lane)
            else:
                self._leave(holder, lane)
        elif lane.open:
            self._free.setdefault(lane)
        else:
            self._free.pop(lane, None)

    def _leave(self, holder: str, lane: _Lane) -> None:
        lanes = self._held.get(holder)
        if lanes is not None:
            lanes.pop(lane, None)
            if not lanes:
                del self._held[holder]
