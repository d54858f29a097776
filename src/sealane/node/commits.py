"""Commits of one or several partitions: staged, handed to the engine in order, applied, and then made visible."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import structs

from sealane.delivery.events import Event, Published
from sealane.delivery.partition import Publication
from sealane.engine import Append, Engine
from sealane.message import Batch, Limits
from sealane.prompt import Prompt

if TYPE_CHECKING:
    from sealane.node.owner import PartitionOwner


class Staged(msgspec.Struct, frozen=True, eq=False):
    """One partition's share of a commit."""

    owner: PartitionOwner
    append: Append
    planned: Sequence[Event]
    """Takes effect when the engine has accepted the commit."""
    riding: Sequence[Event]
    """Has taken effect already, and waited for a commit to ride with."""
    visible: int
    further: Sequence[Append] = ()
    """What follows `append` in the same log, where one batch would be too large."""

    @property
    def appends(self) -> Sequence[Append]:
        return (self.append, *self.further)


def stage(owner: PartitionOwner, publication: Publication | None = None, planned: Sequence[Event] = ()) -> Staged:
    """Prepare an owner's share: what it publishes, what else happens, and what waited for a commit."""
    riding = owner.take_waiting()
    try:
        if publication is None or publication.batch is None:
            append = owner.append(None, 0, [*riding, *planned])
            return Staged(owner, append, planned, riding, owner.core.end)
        planned = [*publication.events, *planned]
        lasting = [event for event in planned if not isinstance(event, Published) or event.lasting]
        append = owner.append(publication.batch, publication.base, [*riding, *lasting])
    except BaseException:
        owner.put_waiting_back(riding)
        raise
    return Staged(owner, append, planned, riding, publication.base + len(publication.batch))


def stage_all(owner: PartitionOwner, batches: Sequence[Batch], planned: Sequence[Event]) -> Staged:
    """The same for several batches, one after the other from the end of the log on. `planned` is all that happens."""
    first, *others = batches
    base, at = owner.core.end, owner.core.end + len(first)
    share = stage(owner, Publication(first, base, range(base, at), list(planned)))
    further = []
    for batch in others:
        further.append(owner.append(batch, at, ()))
        at += len(batch)
    return structs.replace(share, further=further, visible=at)


def within_limits(batch: Batch, limits: Limits) -> list[Batch]:
    """What was put together of many batches, cut: every reader has to take a stored batch as a whole."""
    small = len(batch) <= limits.batch_messages_max and batch.nbytes <= limits.batch_bytes_max
    if small or len(batch) == 1:
        return [batch]
    middle = len(batch) // 2
    halves = batch.slice(0, middle), batch.slice(middle, len(batch))
    return [part for half in halves for part in within_limits(half, limits)]


def by_schema(publication: Publication, batches: Sequence[Batch]) -> list[Batch]:
    """What a publication of several batches, joined, stores: cut where the id of their schema changes."""
    whole, ids = publication.batch, [batch.meta.schema_id for batch in batches]
    assert whole is not None, "nothing of it is new"
    if len(set(ids)) == 1:
        return [whole]
    origins = np.repeat(np.arange(len(batches)), [len(batch) for batch in batches])
    offsets = np.asarray(publication.offsets)
    # What was here before is not stored again, and what is there twice is stored where it is first.
    _, rows = np.unique(np.where(offsets < publication.base, -1, offsets), return_index=True)
    stored = origins[rows[-len(whole) :]]
    cuts = [0, *(np.flatnonzero(np.diff(stored)) + 1).tolist(), len(whole)]
    return [
        whole.slice(start, stop).with_meta(structs.replace(whole.meta, schema_id=ids[stored[start]]))
        for start, stop in pairwise(cuts)
    ]


def commit_together(engine: Engine, shares: Sequence[Staged]) -> Prompt[None]:
    """Commit all of the shares or none. Nothing has changed if this raises.

    The future resolves when they are durable and visible; it outlives a cancelled caller (await it shielded).
    """
    started = asyncio.get_running_loop().time()
    try:
        for share in shares:
            share.owner.check()
        durable = engine.commit([append for share in shares for append in share.appends])
    except BaseException:
        for share in shares:
            share.owner.put_waiting_back(share.riding)
        raise
    try:
        for share in shares:
            share.owner.accepted(share.append, share.planned, durable)
    except Exception as error:
        # The engine has it, and memory only a part of it.
        shares[0].owner.supervisor.stop("commit", error, **shares[0].owner.fields)
        raise

    def finished(outcome: Prompt[None]) -> None:
        error = None if outcome.cancelled() else outcome.exception()
        try:
            for share in shares:
                if error is None and not outcome.cancelled():
                    share.owner.committed(share.visible)
                    for append in share.appends:
                        if append.batch is not None:
                            share.owner.witness.committed(append.batch, append.batch_offset, started)
                else:
                    share.owner.broke(error, share.riding)
        except Exception as crash:
            shares[0].owner.supervisor.stop("commit", crash, **shares[0].owner.fields)

    durable.when_done(finished)
    return durable
