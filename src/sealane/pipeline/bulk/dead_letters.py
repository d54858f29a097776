"""Which messages of a dead-letter topic are those that the lake tells of."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
from pyroaring import BitMap64

from sealane.delivery.headers import header_values
from sealane.node.dead_letters import PREFIX

DIED_SECONDS = 10.0
"""How far the time in a dead letter may be from that in the journal, which is written a moment later. A message that
died, was delivered again by a seek and died once more is two dead letters: this tells them apart."""

_PARTITION, _OFFSET, _TIME = (pa.scalar(f"{PREFIX}{name}") for name in ("partition", "offset", "time"))


class Wanted:
    """Deliveries of one subscription that ended in a dead letter, by where the message was and when it died."""

    def __init__(self, deliveries: Iterable[tuple[int, int, bytes | None, int]]) -> None:
        """Partition, offset, id (None: not known) and time in µs of each."""
        self._died: dict[tuple[str, str], list[tuple[bytes | None, int]]] = {}
        for partition, offset, id, time_us in deliveries:
            self._died.setdefault((str(partition), str(offset)), []).append((id, time_us))

    def offsets_in(self, records: pa.RecordBatch, base: int) -> BitMap64:
        """Those of a stored batch that are wanted; `base` is the offset of its first message."""
        headers = records.column("headers")
        places = zip(
            header_values(headers, _PARTITION).to_pylist(),
            header_values(headers, _OFFSET).to_pylist(),
            strict=True,
        )
        found = BitMap64()
        times = ids = None
        for row, place in enumerate(places):
            died = self._died.get(place)
            if died is None:
                continue
            if times is None or ids is None:
                times, ids = header_values(headers, _TIME).to_pylist(), records.column("id").to_pylist()
            if any(_is_one(died_id, died_us, ids[row], times[row]) for died_id, died_us in died):
                found.add(base + row)
        return found


def _is_one(died_id: bytes | None, died_us: int, id: bytes, time: str | None) -> bool:
    """Headers are the node's own here, and yet text: a topic of that name may have been published to by anyone."""
    if time is None or not time.isdecimal():
        return False
    return died_id in (None, id) and abs(int(time) - died_us) <= DIED_SECONDS * 1e6
