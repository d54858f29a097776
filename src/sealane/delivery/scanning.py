"""Looking inside a batch on behalf of a subscription: its filter, priorities, delays, expiries and keys.

Only for batches that differ from the plain one, and for subscriptions with a filter or key order; columns at a time.
"""

from __future__ import annotations

from typing import cast

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from pyroaring import BitMap64

from sealane.delivery.backlog import Priorities
from sealane.delivery.due import BUCKET_US, rounded_up
from sealane.delivery.events import Expired
from sealane.delivery.filters import Filter
from sealane.delivery.keyed import KeyedBacklog
from sealane.delivery.offsets import from_array, pack
from sealane.delivery.subscription import Subscription
from sealane.message import PRIORITY_DEFAULT, Batch
from sealane.message.schema import DELIVER_AT, EXPIRES, KEY, PRIORITY


def scan_batch(
    subscription: Subscription,
    base: int,
    batch: Batch,
    *,
    visible: int,
    now_us: int,
    matching: Filter | None,
    priorities: Priorities,
) -> list[Expired]:
    """Move the subscription's scan to the end of this batch, which holds the offset that it had reached.

    Returns what had already expired; messages that the filter rejects are settled without an event, since a
    later scan would reject them again.
    """
    start, stop = max(base, subscription.scanned), min(base + len(batch), visible)
    if stop <= start:
        return []
    rows = batch.slice(start - base, stop - base)
    if matching is not None:
        rejected = _offsets(start, ~_bool_array(matching.matches(rows)))
        subscription.pass_over(rejected)
    traits = rows.traits
    if traits.priority_min != PRIORITY_DEFAULT or traits.priority_max != PRIORITY_DEFAULT:
        _mark_priorities(rows, start, priorities)
    events: list[Expired] = []
    if traits.expires_min_us is not None:
        events = _watch_expiry(subscription, rows, start, stop, now_us)
    fresh = subscription.unseen(start, stop)
    if isinstance(subscription.backlog, KeyedBacklog):
        _learn_keys(subscription, subscription.backlog, rows, start, stop)
    if traits.deliver_at_max_us is not None and rounded_up(traits.deliver_at_max_us) > now_us:
        for due_us, offsets in _by_moment(rows, DELIVER_AT, start):
            if due_us > now_us:
                delayed = offsets & fresh
                subscription.parked.add(due_us, delayed)
                subscription.backlog.park(delayed)
                fresh -= delayed
    subscription.backlog.put_back(fresh)
    subscription.scanned = stop
    return events


def _watch_expiry(subscription: Subscription, rows: Batch, start: int, stop: int, now_us: int) -> list[Expired]:
    alive = subscription.settled.without(start, stop)
    expired = BitMap64()
    for due_us, offsets in _by_moment(rows, EXPIRES, start):
        offsets &= alive
        if due_us <= now_us:
            expired |= offsets
        else:
            subscription.expiry.add(due_us, offsets)
    leased = expired & subscription.leases.outstanding
    subscription.stale |= leased
    expired -= leased
    if not expired:
        return []
    event = Expired(subscription.name, pack(expired), now_us)
    subscription.apply(event)
    return [event]


def _mark_priorities(rows: Batch, start: int, priorities: Priorities) -> None:
    values = rows.column(PRIORITY).to_numpy()
    for priority in np.unique(values).tolist():
        priorities.mark(priority, _offsets(start, values == priority))


def _learn_keys(subscription: Subscription, backlog: KeyedBacklog, rows: Batch, start: int, stop: int) -> None:
    alive = subscription.settled.without(start, stop)
    encoded = cast(pa.DictionaryArray, rows.column(KEY).dictionary_encode())
    codes = encoded.indices.fill_null(-1).to_numpy()
    order = np.argsort(codes, kind="stable")
    bounds = np.searchsorted(codes[order], np.arange(len(encoded.dictionary) + 1))
    for code, key in enumerate(encoded.dictionary.to_pylist()):
        of_key = order[bounds[code] : bounds[code + 1]]
        offsets = from_array(of_key.astype(np.uint64) + np.uint64(start)) & alive
        if offsets:
            backlog.learn(key, offsets)
    backlog.park((subscription.parked.members | subscription.dying.members) & alive)
    if subscription.leases.outstanding.intersect(alive):
        for lease in subscription.leases.by_id.values():
            backlog.hold(lease.consumer, lease.offsets & alive)


def _by_moment(rows: Batch, place: int, start: int) -> list[tuple[int, BitMap64]]:
    """The offsets that have a moment in this column, by the millisecond in which it comes."""
    moments = rows.column(place)
    places = np.flatnonzero(_bool_array(moments.is_valid()))
    buckets = -(-moments.drop_null().cast(pa.int64()).to_numpy() // BUCKET_US)
    order = np.argsort(buckets, kind="stable")
    distinct, firsts = np.unique(buckets[order], return_index=True)
    groups = np.split(places[order].astype(np.uint64) + np.uint64(start), firsts[1:])
    return [(bucket * BUCKET_US, from_array(group)) for bucket, group in zip(distinct.tolist(), groups, strict=False)]


def _bool_array(mask: pa.BooleanArray) -> npt.NDArray[np.bool_]:
    return cast("npt.NDArray[np.bool_]", mask.to_numpy(zero_copy_only=False))


def _offsets(start: int, mask: npt.NDArray[np.bool_]) -> BitMap64:
    return from_array(np.flatnonzero(mask).astype(np.uint64) + np.uint64(start))
