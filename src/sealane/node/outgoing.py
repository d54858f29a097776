"""Outgoing messages: from what a caller gives to batches."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence

import pyarrow as pa

from sealane.delivery.config import SECOND_US
from sealane.errors import InvalidArgument, InvalidMessage
from sealane.message import Batch, Limits, Row, from_arrow, from_payloads, from_rows
from sealane.message.payloads import together
from sealane.node.surroundings import Surroundings

BATCH_MESSAGES = 10_000
"""`publish_many` cuts longer sequences into batches of this many."""
SECONDS_MAX = 100 * 365 * 24 * 3600
"""A ttl or a delay of more than a century is a mistake, such as milliseconds."""


class Outgoing:
    """Builds batches under a broker's limits, with its time and randomness."""

    def __init__(self, limits: Limits, surroundings: Surroundings) -> None:
        self.limits = limits
        self.surroundings = surroundings

    def row(
        self,
        payload: bytes,
        *,
        key: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        priority: int = 5,
        ttl: float | None = None,
        delay: float = 0,
        id: uuid.UUID | str | bytes | None = None,
    ) -> Row:
        """A message as it is given: times become moments, types are checked where a mistake is likely."""
        if not isinstance(payload, bytes):
            raise InvalidMessage("payload", f"must be bytes, not {type(payload).__name__}; encode text first")
        if key is None and headers is None and priority == 5 and ttl is None and not delay and id is None:
            return Row(payload)
        expires_us = deliver_at_us = None
        if ttl is not None or delay:
            now_us = self.surroundings.clock()
            if ttl is not None:
                if not isinstance(ttl, int | float) or not 0 < ttl <= SECONDS_MAX:
                    raise InvalidMessage("ttl", f"{ttl!r} is not a number of seconds above 0, up to {SECONDS_MAX:,}")
                expires_us = now_us + round(ttl * SECOND_US)
            if delay:
                if not isinstance(delay, int | float) or not 0 < delay <= SECONDS_MAX:
                    raise InvalidMessage("delay", f"{delay!r} is not a number of seconds from 0 to {SECONDS_MAX:,}")
                deliver_at_us = now_us + round(delay * SECOND_US)
        return Row(payload, key, headers, priority, expires_us, deliver_at_us, id)

    def messages_max(self, wanted: int) -> int:
        """How many messages a batch may be given that would have `wanted` of them."""
        return wanted

    def build(self, rows: list[Row]) -> Batch:
        return from_rows(rows, self.surroundings.stamp(), limits=self.limits)

    def build_plain(self, payloads: list[bytes]) -> Batch:
        """As `build`, of messages that have only a payload."""
        return from_payloads(payloads, self.surroundings.stamp(), limits=self.limits)

    def batches(self, messages: Sequence[bytes] | pa.RecordBatch | pa.Table) -> list[Batch]:
        limits, surroundings = self.limits, self.surroundings
        if isinstance(messages, pa.RecordBatch | pa.Table):
            if not messages.num_rows:
                return []
            return from_arrow(messages, surroundings.stamp(), limits=limits)
        if isinstance(messages, bytes | str):
            raise InvalidArgument("messages", "is one payload; publish_many takes a sequence of them")
        payloads = messages if isinstance(messages, list | tuple) else list(messages)
        return [
            from_payloads(payloads[start:stop], surroundings.stamp(), limits=limits)
            for start, stop in _strides(payloads, BATCH_MESSAGES, limits.batch_bytes_max // 2)
        ]


def _strides(payloads: Sequence[bytes], count: int, bytes_max: int) -> list[tuple[int, int]]:
    """Runs of at most `count` payloads and about `bytes_max` bytes."""
    if len(payloads) <= count and together(payloads) <= bytes_max:
        return [(0, len(payloads))] if payloads else []
    runs, start, size = [], 0, 0
    for index, payload in enumerate(payloads):
        if index > start and (index - start >= count or size + len(payload) > bytes_max):
            runs.append((start, index))
            start, size = index, 0
        size += len(payload)
    runs.append((start, len(payloads)))
    return runs
