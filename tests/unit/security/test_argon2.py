"""Hashes that are asked for at the same time are made one after the other: OpenSSL's threads would starve."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from sealane.security import argon2

SECRETS = [b"secret %d" % number for number in range(200)]
COST: dict[str, Any] = {"salt": b"s" * 16, "length": 32, "iterations": 1, "lanes": 4, "memory_kib": 64}
DEADLINE_SECONDS = 60.0


def test_many_at_the_same_time_are_all_right() -> None:
    with ThreadPoolExecutor(4) as threads:
        kept = list(threads.map(lambda secret: argon2.hashed(secret, **COST), SECRETS, timeout=DEADLINE_SECONDS))
        fits = threads.map(argon2.matches, SECRETS, kept, timeout=DEADLINE_SECONDS)
        others = threads.map(argon2.matches, reversed(SECRETS), kept, timeout=DEADLINE_SECONDS)
        derived = threads.map(lambda secret: argon2.derive(secret, **COST), SECRETS, timeout=DEADLINE_SECONDS)

        assert all(fits)
        assert not any(others)
        assert len(set(derived)) == len(SECRETS)
