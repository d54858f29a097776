"""Batches to stage, as a writer that numbers them makes them."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import msgspec

from sealane.client.lane import Lane
from sealane.message import Batch


def part_of(name: str) -> bytes:
    """A part's name that a test can repeat."""
    return hashlib.blake2b(name.encode(), digest_size=16).digest()


def batch_of(lane: Lane, part: str, number: int, payloads: Sequence[bytes], **options: Any) -> Batch:
    """Batch `number` of a part; `options` are those of a publish, the same for all of its messages."""
    rows = [lane.outgoing.row(payload, **options) for payload in payloads]
    return numbered(lane.outgoing.build(rows), part, number)


def numbered(batch: Batch, part: str, number: int) -> Batch:
    return batch.with_meta(msgspec.structs.replace(batch.meta, producer=part_of(part), sequence=number))


async def stage_part(lane: Lane, topic: str, part: str, batches: Sequence[Sequence[bytes]]) -> tuple[bytes, int]:
    """Stage a whole part, and say so in the words of a publish."""
    for number, payloads in enumerate(batches):
        await lane.stage(topic, batch_of(lane, part, number, payloads))
    return part_of(part), len(batches)


async def stored(lane: Lane, topic: str) -> list[bytes]:
    """The payloads of everything that the topic holds, partition by partition."""
    found: list[bytes] = []
    for partition in (await lane.describe_topic(topic)).partitions:
        at = partition.start
        while at < partition.end:
            read = await lane.browse(topic, partition.partition, at)
            for each in read:
                found += each.batch.payloads()[max(0, at - each.base) :]
            at = read[-1].stop
    return found
