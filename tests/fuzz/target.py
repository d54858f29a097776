"""What a fuzz target is: one decoder, inputs that it takes, and what may come of any other bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from tests.fuzz.mutation import BYTES_MAX, mutate

Spoil = Callable[[bytes, random.Random], bytes]
"""Another input, made of one: the same choices make the same."""
Check = Callable[[bytes], bool]
"""Gives bytes to the decoder. True: it took them, and what it made of them keeps every rule. False: it refused them by
the error that it documents. Whatever else happens is a bug."""


@dataclass(frozen=True, eq=False)
class Target:
    name: str
    seeds: tuple[bytes, ...]
    """Valid inputs, made by Sealane's own encoders: the decoder takes each of them."""
    check: Check
    spoil: Spoil = mutate
    """Spoils inputs in a way that gets past the outermost check of their format."""
    bytes_max: int = BYTES_MAX
    """Of an input that a coverage-guided run makes."""
