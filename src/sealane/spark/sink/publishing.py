"""The end of a write, on the driver: what executors have staged is published together and once, or dropped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sealane.log import get_log
from sealane.spark.errors import InvalidOption
from sealane.spark.options.access import Access, with_retries
from sealane.spark.sink.staging import drop_parts

PARTS_MAX = 10_000
"""Tasks that may write rows in one job or micro-batch: all their parts are named in one request."""
BYTES_PER_SECOND_MIN = 4 << 20
"""A node that publishes more slowly than this is taken to be stuck: its answer is not waited for any longer."""

log = get_log("sealane.spark")


class Part(NamedTuple):
    """What the driver has to know of what a task has staged."""

    name: bytes
    batches: int
    rows: int
    bytes: int


def publish(access: Access, transaction: str, parts: Sequence[Part], *, epoch: int | None = None) -> None:
    """Make all of it visible, once under `transaction`, however often it is tried; nothing at all if there is nothing.

    What was published before, by an earlier run, is dropped now. Raises `NodeUnreachable`: then it may have happened,
    and trying again, with the same rows staged anew, is right in any case.
    """
    parts = [part for part in parts if part.batches]
    if not parts:
        return
    if len(parts) > PARTS_MAX:
        drop(access, parts)
        problem = f"{len(parts):,} tasks have written rows, at most {PARTS_MAX:,} can be published together"
        raise InvalidOption("transaction", f"{problem}; nothing was: write with fewer partitions (df.coalesce)")
    names = [(part.name, part.batches) for part in parts]
    seconds = access.retry_seconds + sum(part.bytes for part in parts) / BYTES_PER_SECOND_MIN
    is_new = with_retries(
        access,
        f"publishing {sum(part.rows for part in parts):,} rows as {transaction!r}",
        lambda lane: lane.publish_staged(transaction, names, epoch=epoch, timeout=seconds),
    )
    if not is_new:
        log.info("what was to be published had been already", transaction=transaction, epoch=epoch)


def drop(access: Access, parts: Sequence[Part]) -> None:
    """Have the node forget it; if it cannot be told it does so by itself after a while."""
    names = [part.name for part in parts if part.batches]
    if names:
        drop_parts(access, names)
