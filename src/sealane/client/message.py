"""What a consumer is handed: a message, or a batch of them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, Self

import numpy as np
import pyarrow as pa
from pyroaring import BitMap64

from sealane.client.broker import Hold
from sealane.delivery.offsets import span
from sealane.errors import CannotOpen
from sealane.message import Batch
from sealane.message.concat import concat
from sealane.node import Delivery, Part
from sealane.node.deliveries import offsets_of

if TYPE_CHECKING:
    from sealane.client.answers import Answers

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Held(Protocol):
    """What holds the lease of a message, and takes its answers."""

    @property
    def hold(self) -> Hold: ...


class LeasedMessage:
    """One leased message, as it can be read; columns other than the payload are looked up when asked for."""

    __slots__ = ("_answers", "_delivery", "_part", "_row", "offset", "payload")

    def __init__(self, answers: Held, delivery: Delivery, part: Part, row: int, offset: int, payload: bytes) -> None:
        self._answers = answers
        self._delivery = delivery
        self._part = part
        self._row = row
        self.offset = offset
        self.payload = payload

    @property
    def topic(self) -> str:
        return self._delivery.topic

    @property
    def partition(self) -> int:
        return self._delivery.partition

    @property
    def id(self) -> uuid.UUID:
        return uuid.UUID(bytes=self._value("id"))

    @property
    def key(self) -> bytes | None:
        key: bytes | None = self._value("key")
        return key

    @property
    def headers(self) -> dict[str, str]:
        """Empty when it has none."""
        return dict(self._value("headers") or ())

    @property
    def priority(self) -> int:
        priority: int = self._value("priority")
        return priority

    @property
    def created(self) -> datetime:
        column = self._part.batch.records.column("created")
        return _EPOCH + timedelta(microseconds=column[self._row].value)

    @property
    def schema_id(self) -> int | None:
        """Of the schema that the payload fits, where its topic checks that; `schema.show` has it by its id."""
        return self._part.batch.meta.schema_id

    @property
    def envelope(self) -> bytes | None:
        """Of a message whose payload is sealed end to end, as it is here: who may open it. Without `keys` all that were
        sealed come so; what a consumer's `keys` have opened has none.
        """
        envelope: bytes | None = self._value("envelope")
        return envelope

    @property
    def sealed(self) -> bool:
        """Whether the payload is sealed end to end, and was not opened."""
        return self.envelope is not None

    @property
    def attempt(self) -> int:
        """From 1."""
        for offsets, attempt in self._delivery.attempts:
            if self.offset in offsets:
                return attempt
        return 1

    def lease(self) -> tuple[Hold, int, int, BitMap64]:
        """Under which lease it is held, for a transaction."""
        return self._answers.hold, self.partition, self._delivery.lease, self._offsets()

    def _offsets(self) -> BitMap64:
        return span(self.offset, self.offset + 1)

    def _value(self, column: str) -> Any:
        value: Any = self._part.batch.records.column(column)[self._row].as_py()
        return value

    def __repr__(self) -> str:
        # The payload and key stay out of logs.
        place = f"{self.topic}:{self.partition}@{self.offset}"
        return f"<{type(self).__name__} {place} attempt {self.attempt}, {len(self.payload):,} bytes>"


class Unopened(LeasedMessage):
    """A message that the consumer's keys do not open: all of it can be read but the payload."""

    __slots__ = ("_reason",)

    def __init__(self, answers: Held, delivery: Delivery, part: Part, row: int, offset: int, reason: str) -> None:
        self._answers = answers
        self._delivery = delivery
        self._part = part
        self._row = row
        self.offset = offset
        self._reason = reason

    @property
    def payload(self) -> bytes:  # type: ignore[override]
        """Raises `CannotOpen` with the reason."""
        raise CannotOpen([self.id], self._reason)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.topic}:{self.partition}@{self.offset} attempt {self.attempt}>"


class LeasedBatch:
    """Messages of one partition, leased together, as they can be read."""

    __slots__ = ("_answers", "_batch", "_delivery", "_parts", "_problems")

    def __init__(
        self, answers: Held, delivery: Delivery, parts: tuple[Part, ...], problems: Mapping[int, str] | None = None
    ) -> None:
        """`problems`, by offset: why payloads could not be opened."""
        self._answers = answers
        self._delivery = delivery
        self._parts = parts
        self._problems = problems or None
        self._batch: Batch | None = None

    def __len__(self) -> int:
        return sum(len(part.batch) for part in self._parts)

    @property
    def topic(self) -> str:
        return self._delivery.topic

    @property
    def partition(self) -> int:
        return self._delivery.partition

    @property
    def first_offset(self) -> int:
        return int(self._parts[0].offsets[0])

    def offsets(self) -> list[int]:
        return [int(offset) for part in self._parts for offset in part.offsets]

    def payloads(self) -> list[bytes]:
        """Raises `CannotOpen` if the consumer's keys do not open all of them: go on with `openable()` then."""
        if self._problems is not None:
            raise self._cannot_open()
        if len(self._parts) == 1:
            return self._parts[0].batch.payloads()
        return [payload for part in self._parts for payload in part.batch.payloads()]

    def to_arrow(self) -> pa.RecordBatch:
        """The messages as a record batch with the columns of the message schema. Raises as `payloads` does."""
        if self._problems is not None:
            raise self._cannot_open()
        if self._batch is None:
            self._batch = concat([part.batch for part in self._parts])
        return self._batch.records

    def openable(self) -> Self:
        """The messages whose payloads can be read: without `keys`, or if these open all, the whole batch."""
        return self._those(unopened=False)

    def unopened(self) -> Self:
        """The messages that the consumer's keys do not open, to be answered by themselves; maybe none."""
        return self._those(unopened=True)

    def _those(self, *, unopened: bool) -> Self:
        problems = self._problems or {}
        parts = []
        for part in self._parts:
            rows = [row for row, offset in enumerate(part.offsets) if (int(offset) in problems) is unopened]
            if len(rows) == len(part.batch):
                parts.append(part)
            elif rows:
                taken = np.array(rows, dtype=np.int64)
                parts.append(Part(np.asarray(part.offsets, dtype=np.uint64)[taken], part.batch.take(taken)))
        return type(self)(self._answers, self._delivery, tuple(parts), problems if unopened else None)

    def _cannot_open(self) -> CannotOpen:
        ids = [id for part in self.unopened()._parts for id in part.batch.ids()]
        assert self._problems is not None
        return CannotOpen([uuid.UUID(bytes=id) for id in ids], next(iter(self._problems.values())))

    def lease(self) -> tuple[Hold, int, int, BitMap64]:
        """Under which lease they are held, for a transaction."""
        return self._answers.hold, self.partition, self._delivery.lease, self._offsets()

    def _rows(self) -> Iterator[tuple[Part, int, int, bytes]]:
        for part in self._parts:
            for row, (offset, payload) in enumerate(zip(part.offsets, part.batch.payloads(), strict=True)):
                yield part, row, int(offset), payload

    def _offsets(self) -> BitMap64:
        offsets = BitMap64()
        for part in self._parts:
            offsets |= offsets_of(part)
        return offsets

    def __repr__(self) -> str:
        at = self.first_offset if self._parts else "nowhere"
        return f"<{type(self).__name__} {self.topic}:{self.partition}@{at}, {len(self):,} messages>"


class Message(LeasedMessage):
    """One leased message. `ack`, `nack` or `extend` it; columns other than the payload are looked up when asked for."""

    __slots__ = ()
    _answers: Answers

    async def ack(self, *, confirm: bool = False) -> None:
        """It is done. Sent with others within milliseconds; with `confirm`, returns when it is durable: after that
        the message is never delivered again on this subscription. Raises `LeaseLost` (with `confirm`) if it was
        no longer this consumer's.
        """
        if confirm:
            await self._answers.ack(self._delivery, self._offsets(), confirm=True)
        else:
            self._answers.ack_one(self._delivery, self.offset)

    async def nack(self, *, delay: float | None = None, reason: str | None = None, confirm: bool = False) -> None:
        """It failed. It comes again after `delay` seconds, or the subscription's back-off; `reason` goes with it to
        the dead letters if this was its last attempt.
        """
        await self._answers.nack(self._delivery, self._offsets(), delay=delay, reason=reason, confirm=confirm)

    async def extend(self, seconds: float) -> None:
        """Keep the lease that this message came under for `seconds` from now. Raises `LeaseLost` if it is over."""
        await self._answers.extend(self._delivery, seconds)


class UnopenedMessage(Unopened, Message):
    """One leased message that the consumer's keys do not open."""

    __slots__ = ()


class MessageBatch(LeasedBatch):
    """Messages of one partition, leased together."""

    __slots__ = ()
    _answers: Answers

    def __iter__(self) -> Iterator[Message]:
        """The messages one by one; each can be answered by itself."""
        problems = self._problems
        for part, row, offset, payload in self._rows():
            if problems is not None and offset in problems:
                yield UnopenedMessage(self._answers, self._delivery, part, row, offset, problems[offset])
            else:
                yield Message(self._answers, self._delivery, part, row, offset, payload)

    async def ack(self, *, confirm: bool = False) -> None:
        """All of it is done; see `Message.ack`."""
        await self._answers.ack(self._delivery, self._offsets(), confirm=confirm)

    async def nack(self, *, delay: float | None = None, reason: str | None = None, confirm: bool = False) -> None:
        """All of it failed; see `Message.nack`."""
        await self._answers.nack(self._delivery, self._offsets(), delay=delay, reason=reason, confirm=confirm)

    async def extend(self, seconds: float) -> None:
        await self._answers.extend(self._delivery, seconds)
