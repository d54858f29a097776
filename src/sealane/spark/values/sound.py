"""What was read of payloads, beside what could not be."""

from __future__ import annotations

import pyarrow as pa

from sealane.message.arrow_compute import pc
from sealane.schemas.by_halves import Bools


def sound_and_corrupt(payloads: pa.Array, values: pa.Array, is_sound: Bools) -> tuple[pa.Array, pa.Array]:
    """The values, and the payloads that are not sound, null elsewhere."""
    nothing = pa.scalar(None, payloads.type)
    if is_sound.all():
        return values, pa.nulls(len(payloads), payloads.type)
    return values, pc.if_else(pa.array(is_sound), nothing, payloads)
