"""Who made a batch, as the node knows it: written into its metadata by doors whose messages tell their author.

A batch has one producer. Clients of the native protocol put a random identity there, by which what they send twice is
stored once; who they are is not kept. Nobody outside can write what is written here (`Session.open_batch`).
"""

from __future__ import annotations

import msgspec

from sealane.message import Batch, BatchMeta
from sealane.security.principals import Principal

AUTHOR_PREFIX = b"principal:"


def written_by(batch: Batch, principal: Principal) -> Batch:
    """The same messages, with who publishes them."""
    author = AUTHOR_PREFIX + principal.name.encode()
    return batch.with_meta(msgspec.structs.replace(batch.meta, producer=author, sequence=None))


def author_of(meta: BatchMeta) -> str | None:
    """The principal who published the batch; None if that was not written down."""
    if meta.producer is None or not meta.producer.startswith(AUTHOR_PREFIX):
        return None
    return meta.producer.removeprefix(AUTHOR_PREFIX).decode(errors="replace")
