"""Sending many messages in order, with the number of the line that was refused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from sealane.cli.blocking import StandardOutput
from sealane.cli.shapes import read_message
from sealane.errors import InvalidMessage, SealaneError

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.client.sealing import SealFor
    from sealane.message import Row
    from sealane.node.receipts import Receipt

STRIDE_MESSAGES = 5_000
STRIDE_BYTES = 1 << 20
"""One batch a stride: it is stored as a whole, or not at all."""


class Item(NamedTuple):
    """A message to send."""

    line: int
    options: dict[str, Any]
    """What `Lane.publish` takes."""
    written: bytes | None = None
    """A JSON object whose fields win over `options`."""


class Sender:
    """Publishes what it is given, in order; the first failure ends it and says what was stored."""

    def __init__(
        self,
        lane: Lane,
        topic: str,
        *,
        receipts: StandardOutput | None = None,
        seal_for: SealFor | None = None,
    ) -> None:
        self._lane = lane
        self._topic = topic
        self._receipts = receipts
        self._seal_for = seal_for
        self.messages = 0
        """Durable so far."""

    async def send(self, items: Sequence[Item]) -> None:
        """Return when all of them are durable."""
        rows: list[Row] = []
        lines: list[int] = []
        size = 0
        for item in items:
            try:
                row = self._lane.outgoing.row(**{**item.options, **_written(item)})
            except InvalidMessage as error:
                await self._publish(rows, lines)
                raise self._refused(item.line, error) from error
            if rows and (
                len(rows) >= STRIDE_MESSAGES
                or size + _size(row) > STRIDE_BYTES
                or (row.id is None) != (rows[0].id is None)
            ):
                await self._publish(rows, lines)
                rows, lines, size = [], [], 0
            rows.append(row)
            lines.append(item.line)
            size += _size(row)
        await self._publish(rows, lines)

    async def _publish(self, rows: list[Row], lines: list[int]) -> None:
        if not rows:
            return
        try:
            batch = self._lane.outgoing.build(rows)
        except InvalidMessage as error:
            sound = self._sound(rows)
            if sound == len(rows):
                raise
            await self._publish(rows[:sound], lines)
            raise self._refused(lines[sound], error) from error
        # Ids that were made here are made again: only those that were given are looked for among the stored ones.
        records = batch.records if batch.meta.given_ids else batch.records.drop_columns(["id"])
        try:
            receipts = await self._lane.publish_many(self._topic, records, seal_for=self._seal_for)
        except SealaneError as error:
            error.add_note(f"{self.messages:,} messages were published before")
            raise
        self.messages += len(rows)
        if self._receipts is not None:
            await self._receipts.write([receipt_line(receipt) for receipt in receipts])

    def _sound(self, rows: list[Row]) -> int:
        """How many there are before the first that is refused."""
        for index, row in enumerate(rows):
            try:
                self._lane.outgoing.build([row])
            except InvalidMessage:
                return index
        return len(rows)

    def _refused(self, line: int, error: InvalidMessage) -> InvalidMessage:
        before = f"the {self.messages:,} messages before it are published"
        return InvalidMessage(f"line {line:,}:", f"{error.field} {error.problem}; {before}")


def receipt_line(receipt: Receipt) -> bytes:
    shape = {"id": str(receipt.id), "partition": receipt.partition, "offset": receipt.offset}
    return json.dumps(shape).encode() + b"\n"


def _written(item: Item) -> dict[str, Any]:
    return {} if item.written is None else read_message(item.written)


def _size(row: Row) -> int:
    headers = sum(len(name) + len(value) for name, value in row.headers.items()) if row.headers else 0
    return len(row.payload) + len(row.key or b"") + headers
