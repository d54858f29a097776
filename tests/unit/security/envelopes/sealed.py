"""Batches to seal, and keys to seal them for; RSA keys are made once, since that takes long."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache

from sealane.message import Batch, Limits, Stamp, from_payloads
from sealane.security.envelopes import KeyKind, PrivateKey, Recipients, seal_batch

LIMITS = Limits()


@lru_cache
def key(kind: KeyKind = "x25519", number: int = 0) -> PrivateKey:
    return PrivateKey.generate(kind)


def plain(payloads: Sequence[bytes]) -> Batch:
    return from_payloads(payloads, Stamp(1_700_000_000_000_000, os.urandom(16)), limits=LIMITS)


def seal(batch: Batch, *keys: PrivateKey, limits: Limits = LIMITS) -> Batch:
    return seal_batch(batch, Recipients(each.public for each in keys), limits=limits, entropy=os.urandom)
