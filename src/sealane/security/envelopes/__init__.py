"""End-to-end envelopes: sealed by the sender, opened by the recipients; the broker between them sees no payload."""

from __future__ import annotations

from sealane.security.envelopes.batches import open_batch
from sealane.security.envelopes.envelope import RECIPIENTS_MAX
from sealane.security.envelopes.keys import KEY_KINDS, KeyKind, PrivateKey, PublicKey, same_fingerprint
from sealane.security.envelopes.opening import OpeningKeys, open_columns
from sealane.security.envelopes.sealing import Recipients, seal_batch, sealed_bytes

__all__ = [
    "KEY_KINDS",
    "RECIPIENTS_MAX",
    "KeyKind",
    "OpeningKeys",
    "PrivateKey",
    "PublicKey",
    "Recipients",
    "open_batch",
    "open_columns",
    "same_fingerprint",
    "seal_batch",
    "sealed_bytes",
]
