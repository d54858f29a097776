"""What a client writes down before a call and after its confirmation: one line each, in a file that only it appends to.

A line is a JSON list: the time (`CLOCK_MONOTONIC`, the same for every process of the machine), what happened, details.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import sealane
from sealane.node.receipts import Receipt

Stored = tuple[str, int | None, int | None, str | None]
"""A message that is said to be stored: name, partition, offset, id. Who only flushes knows the name alone."""


def full_name(topic: str) -> str:
    """As messages tell it."""
    return f"default/{topic}"


class Recorder:
    """Written to the file at once, so that nothing is forgotten however the process ends."""

    def __init__(self, path: Path) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)

    def note(self, what: str, *details: Any) -> None:
        line = json.dumps([time.monotonic_ns(), what, *details], separators=(",", ":")) + "\n"
        os.write(self._file, line.encode())

    def close(self) -> None:
        os.close(self._file)

    # --- publishing ---------------------------------------------------------------------------------------------------

    def publishing(self, topic: str, names: Iterable[str]) -> None:
        self.note("publishing", full_name(topic), list(names))

    def published(self, topic: str, stored: Iterable[Stored]) -> None:
        self.note("published", full_name(topic), list(stored))

    def not_published(self, names: Iterable[str], error: BaseException) -> None:
        """It may be stored or not."""
        self.note("not published", list(names), repr(error))

    # --- consuming ----------------------------------------------------------------------------------------------------

    def granted(self, message: sealane.Message, subscription: str) -> None:
        place = [message.topic, subscription, message.partition, message.offset]
        self.note("granted", *place, message.payload.decode(), message.attempt)

    def batch_granted(self, batch: sealane.MessageBatch, subscription: str) -> None:
        for message in batch:
            self.granted(message, subscription)

    def acking(self, topic: str, subscription: str, partition: int, offsets: list[int]) -> None:
        self.note("acking", topic, subscription, partition, offsets)

    def acked(self, topic: str, subscription: str, partition: int, offsets: list[int]) -> None:
        """Confirmed: from now on nobody may be granted these."""
        self.note("acked", topic, subscription, partition, offsets)

    def ended(self, subscription: str, error: BaseException) -> None:
        """A consumer's loop has raised; it is begun again."""
        self.note("ended", subscription, repr(error))


def stored(name: str, receipt: Receipt) -> Stored:
    return name, receipt.partition, receipt.offset, receipt.id.hex
