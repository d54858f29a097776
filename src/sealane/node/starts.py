"""Where a new subscription, or a seek, begins."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import pyarrow as pa

from sealane.errors import InvalidArgument
from sealane.node.owner import PartitionOwner

Start = str | Mapping[int, int] | datetime
"""`"earliest"`, `"latest"`, offsets by partition, or a moment."""


def check_start(start: Start) -> None:
    if isinstance(start, str):
        if start not in ("earliest", "latest"):
            raise InvalidArgument(
                "start", f"{start!r} is neither 'earliest' nor 'latest'; offsets or a datetime do too"
            )
    elif isinstance(start, Mapping):
        for partition, offset in start.items():
            if not isinstance(partition, int) or not isinstance(offset, int) or offset < 0:
                raise InvalidArgument("start", f"{{{partition!r}: {offset!r}}} is not partition: offset from 0")
    elif not isinstance(start, datetime):
        raise InvalidArgument("start", f"{type(start).__name__} is neither a str, a mapping nor a datetime")


def time_us_of(argument: str, moment: datetime) -> int:
    """In µs since 1970. Raises `InvalidArgument` for a moment that could be any of a day."""
    if moment.tzinfo is None:
        raise InvalidArgument(argument, f"{moment} has no time zone; give one, for example datetime.now(timezone.utc)")
    return int(moment.astimezone(UTC).timestamp() * 1_000_000)


async def offset_of(start: Start, owner: PartitionOwner) -> int:
    """The first offset to deliver of this partition."""
    core = owner.core
    if isinstance(start, datetime):
        return await _offset_at(start, owner)
    if isinstance(start, str):
        return core.start if start == "earliest" else core.end
    return min(max(start.get(owner.key.partition, core.start), core.start), core.end)


async def _offset_at(moment: datetime, owner: PartitionOwner) -> int:
    """The first message created at or after the moment."""
    time_us = time_us_of("start", moment)
    at = max(await owner.engine.offset_at(owner.key, time_us), owner.core.start)
    while at < owner.core.visible:
        stored = await owner.fetch(at)
        if stored is None:
            break
        created = stored.batch.records.column("created").cast(pa.int64()).to_numpy()
        later = np.flatnonzero(created >= time_us)
        if len(later):
            return max(stored.base + int(later[0]), at)
        at = stored.stop
    return owner.core.visible
