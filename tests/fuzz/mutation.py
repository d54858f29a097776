"""Ways to spoil bytes: what every target falls back on, whatever its format."""

from __future__ import annotations

import random
from collections.abc import Sequence

BYTES_MAX = 4096
"""Of a mutated input: decoders find their way in a few hundred bytes, and short inputs are many inputs."""

INTERESTING: tuple[bytes, ...] = (
    *(bytes([byte]) for byte in (0, 1, 3, 0x7F, 0x80, 0xFF)),
    *(number.to_bytes(4, "little") for number in (0, 1, 8, 9, 1000, 1001, 2**16, 2**31 - 1, 2**31, 2**32 - 1)),
    *(number.to_bytes(8, "little") for number in (0, 1, 8, 1000, 2**31, 2**40, 2**62, 2**63 - 1, 2**63, 2**64 - 1)),
)


def mutate(
    data: bytes, choose: random.Random, *, words: Sequence[bytes] = INTERESTING, bytes_max: int = BYTES_MAX
) -> bytes:
    """A few changes of the kinds that find bugs: bits, boundary numbers, moved pieces, cuts and repeats.

    `words` are what is written over others or put between them.
    """
    changed = bytearray(data)
    for _ in range(choose.choice((1, 1, 1, 2, 3, 8))):
        if not changed:
            break
        # Most of what a decoder trusts stands in the first few hundred bytes.
        place = choose.randrange(len(changed) if choose.random() < 0.4 else min(len(changed), 800))
        _change(changed, place, choose, words)
    return bytes(changed[:bytes_max])


def _change(changed: bytearray, place: int, choose: random.Random, words: Sequence[bytes]) -> None:
    kind = choose.randrange(8)
    if kind == 0:
        changed[place] ^= 1 << choose.randrange(8)
    elif kind in (1, 2):
        value = choose.choice(words)
        # Numbers in binary formats stand at multiples of their length.
        place -= place % max(1, len(value)) if kind == 1 else 0
        changed[place : place + len(value)] = value
    elif kind == 3:
        source = choose.randrange(len(changed))
        width = choose.choice((4, 8, 16, 64))
        changed[place : place + width] = changed[source : source + width]
    elif kind == 4 and choose.random() < 0.3:
        del changed[place:]
    elif kind == 5 and choose.random() < 0.3:
        del changed[place : place + choose.choice((1, 4, 8))]
    elif kind == 6 and choose.random() < 0.3:
        changed[place:place] = changed[place : place + choose.choice((1, 8, 64))]
    elif kind == 7:
        changed[place:place] = choose.choice(words)
