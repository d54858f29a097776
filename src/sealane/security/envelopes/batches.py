"""Opening a batch that was received: the same messages, their payloads in the clear and their envelopes gone."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pyarrow as pa

from sealane.message import Batch
from sealane.message.arrow_compute import pc
from sealane.message.schema import ENVELOPE, PAYLOAD
from sealane.security.envelopes.opening import NOT_SEALED, OpeningKeys, open_columns
from sealane.security.envelopes.sealing import with_columns

_BINARY = pa.binary()


def open_batch(batch: Batch, keys: OpeningKeys, *, require_sealed: bool = False) -> tuple[Batch, Mapping[int, str]]:
    """The batch with what could be opened, and by row why the others could not: those stay as they came."""
    if batch.meta.envelope is None and batch.absent >> ENVELOPE & 1:
        return batch, dict.fromkeys(range(len(batch)), NOT_SEALED) if require_sealed else {}
    sealed, shared = batch.column(PAYLOAD), batch.meta.envelope
    envelopes = batch.column(ENVELOPE) if shared is None else shared
    payloads, problems = open_columns(batch.ids(), sealed, envelopes, keys, require_sealed=require_sealed)
    if len(problems) == len(batch):
        return batch, problems
    meta = msgspec.structs.replace(batch.meta, envelope=None)
    if not problems:
        return with_columns(batch, {PAYLOAD: pa.array(payloads, _BINARY), ENVELOPE: None}, meta), problems
    kept = [before if now is None else now for now, before in zip(payloads, sealed.to_pylist(), strict=True)]
    still = pa.array([row in problems for row in range(len(batch))])
    unopened = pc.if_else(still, batch.column(ENVELOPE), pa.scalar(None, _BINARY))
    return with_columns(batch, {PAYLOAD: pa.array(kept, _BINARY), ENVELOPE: unopened}, meta), problems
