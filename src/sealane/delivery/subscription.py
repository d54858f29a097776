"""One subscription on one partition: what is ready, leased, waiting, dead and settled.

Every unsettled offset below the visible end is in exactly one place: not yet scanned, ready, leased, parked (for a
retry or a delay) or dying (out of attempts, on its way to the dead-letter topic). Commands look at the state and return
events; `apply` is the only way events change lasting state, live and in recovery alike. Ready messages, consumers and
expiry are live state, found again by scanning the log from the floor.
"""

from __future__ import annotations

from pyroaring import BitMap64

from sealane.delivery.attempts import Attempts
from sealane.delivery.backlog import Backlog, Priorities, PriorityBacklog
from sealane.delivery.config import SubscriptionConfig
from sealane.delivery.due import DueSet
from sealane.delivery.dying import DeadGroup, Dying
from sealane.delivery.events import (
    Acked,
    Advanced,
    Configured,
    DeadLettered,
    Dropped,
    Expired,
    Extended,
    Failed,
    FailureCause,
    Granted,
    Released,
    Sought,
    SubscriptionEvent,
)
from sealane.delivery.keyed import KeyedBacklog
from sealane.delivery.leases import Lease, LeaseTable
from sealane.delivery.offsets import pack, span, unpack
from sealane.delivery.settled import SettledSet


class Subscription:
    """See the module's text. `priorities` is shared by the partition's subscriptions."""

    def __init__(self, name: str, config: SubscriptionConfig, floor: int, priorities: Priorities) -> None:
        self.name = name
        self.config = config
        self.settled = SettledSet(floor)
        self.scanned = floor
        self.attempts = Attempts()
        self.leases = LeaseTable()
        self.parked = DueSet()
        self.expiry = DueSet()
        self.stale = BitMap64()
        """Expired while leased: settled as expired unless the lease ends in an ack."""
        self.dying = Dying()
        self.backlog: Backlog = KeyedBacklog() if config.mode == "key-shared" else PriorityBacklog(priorities)

    # --- scanning: from the log to the backlog ------------------------------------------------------------------------

    def unseen(self, start: int, stop: int) -> BitMap64:
        """Of a scanned run, what can become ready: neither settled, nor leased, nor waiting, nor dying."""
        fresh = self.settled.without(start, stop)
        for known in (self.leases.outstanding, self.parked.members, self.dying.members):
            if known:
                fresh -= known
        return fresh

    def scan_plain(self, stop: int) -> None:
        """Everything up to `stop` needs no look inside."""
        self.backlog.put_back(self.unseen(self.scanned, stop))
        self.scanned = stop

    def pass_over(self, offsets: BitMap64) -> None:
        """These are not for this subscription: behind it without an event, since a later scan finds the same."""
        self._settle(offsets)

    def lose(self, offsets: BitMap64) -> None:
        """Nobody is to have these any more: behind the subscription, wherever they were."""
        self.leases.revoke(offsets)
        self.dying.bury(offsets)
        self._settle(offsets)

    # --- commands -----------------------------------------------------------------------------------------------------

    def grant(self, consumer: str, count: int, *, lease_from: int, now_us: int, bound: bool = True) -> list[Granted]:
        """Lease up to `count` ready messages: one grant a priority, best first."""
        deadline_us = now_us + self.config.lease_us
        events: list[Granted] = []
        for offsets in self.backlog.take(consumer, count):
            lease = lease_from + len(events)
            event = Granted(self.name, lease, consumer, pack(offsets), now_us, deadline_us, bound)
            self._lease(event, offsets)
            events.append(event)
        return events

    def grant_fresh(self, consumer: str, stop: int, *, lease: int, now_us: int, bound: bool = True) -> Granted | None:
        """Scan and grant in one step: everything from the end of the scan to `stop`, which is plain and not empty.

        None, and nothing has changed, unless that is all there is to grant, and new to this subscription.
        """
        start = self.scanned
        if self.config.mode == "key-shared" or self.config.filter is not None or self.attempts.levels:
            return None
        if start < self.settled.floor or self.backlog.has_ready(consumer):
            return None
        for known in (self.settled.above, self.leases.outstanding, self.parked.members, self.dying.members):
            if known and known.max() >= start:
                return None
        event = Granted(self.name, lease, consumer, (start, stop), now_us, now_us + self.config.lease_us, bound)
        self._lease(event, span(start, stop))
        self.scanned = stop
        return event

    def ack(self, lease: int, offsets: BitMap64 | None, now_us: int) -> Acked | None:
        """Settle what the lease still holds of the offsets (None: all of it)."""
        held = self.leases.held(lease, offsets)
        if not held:
            return None
        event = Acked(self.name, lease, pack(held), now_us)
        self.leases.remove(lease, held)
        self._settle(held)
        return event

    def ack_whole(self, lease: int, offsets: BitMap64, now_us: int) -> Acked | None:
        """Plan an ack of all of the offsets, for a transaction; None if the lease does not hold every one of them."""
        if self.leases.held(lease, offsets) != offsets:
            return None
        return Acked(self.name, lease, pack(offsets), now_us)

    def fail(
        self,
        lease: int,
        offsets: BitMap64 | None,
        now_us: int,
        *,
        cause: FailureCause,
        delay_us: int | None = None,
        reason: str | None = None,
    ) -> list[SubscriptionEvent]:
        """Count an attempt for what the lease still holds, and bring it back later, or give it up.

        In key-shared mode what was granted beyond it, of the same keys, is released too.
        """
        held = self.leases.held(lease, offsets)
        if not held:
            return []
        events: list[SubscriptionEvent] = []
        later = self._granted_beyond(held)
        gone = held & self.stale
        if gone:
            events.append(Expired(self.name, pack(gone), now_us))
            self.leases.remove(lease, gone)
            held -= gone
        for failures, group in self.attempts.by_failures(held):
            pause_us = self.config.retry.delay_us(failures + 1) if delay_us is None else delay_us
            events.append(Failed(self.name, lease, pack(group), now_us, now_us + pause_us, cause, reason))
        for event in events:
            self.apply(event)
        if later:
            events.extend(self._release_everywhere(later))
        return events

    def _granted_beyond(self, failed: BitMap64) -> BitMap64:
        """What must come back with these to keep the order of their keys.

        Leases that outlived a restart may hold messages whose keys no scan has found yet: those come back in any case.
        """
        later = self.backlog.later_of_key(failed)
        outstanding = self.leases.outstanding
        if self.config.mode == "key-shared" and outstanding.max() >= self.scanned:
            unknown = outstanding - failed
            unknown.remove_range(0, max(self.scanned, failed.min()))
            later |= unknown
        return later

    def release(self, lease: int, offsets: BitMap64 | None) -> list[SubscriptionEvent]:
        """Give back unhandled messages: ready at once, no attempt counted.

        In key-shared mode what was granted beyond them, of the same keys, is released too.
        """
        held = self.leases.held(lease, offsets)
        if not held:
            return []
        later = self._granted_beyond(held)
        events = [self._release(lease, held)]
        if later:
            events.extend(self._release_everywhere(later))
        return events

    def _release(self, lease: int, held: BitMap64) -> SubscriptionEvent:
        event = Released(self.name, lease, pack(held))
        self.apply(event)
        return event

    def _release_everywhere(self, offsets: BitMap64) -> list[SubscriptionEvent]:
        held = [(lease.id, these) for lease in self.leases.by_id.values() if (these := lease.offsets & offsets)]
        return [self._release(lease, these) for lease, these in held]

    def extend(self, lease: int, deadline_us: int) -> Extended | None:
        if lease not in self.leases.by_id:
            return None
        event = Extended(self.name, lease, deadline_us)
        self.apply(event)
        return event

    def end_connection(self, consumer: str, now_us: int) -> list[SubscriptionEvent]:
        """The consumer's connection is gone: its bound leases fail, and their messages are ready at once."""
        events: list[SubscriptionEvent] = []
        for lease in self.leases.of_consumer(consumer):
            if lease.bound:
                events.extend(self.fail(lease.id, None, now_us, cause="connection ended", delay_us=0))
        return events

    def tick(self, now_us: int) -> list[SubscriptionEvent]:
        """Let time pass: leases end, waiting messages become ready, others expire."""
        events: list[SubscriptionEvent] = []
        for lease in self.leases.pop_expired(now_us):
            events.extend(self.fail(lease.id, None, now_us, cause="lease expired"))
        if self.expiry:
            expired = self.expiry.pop_due(now_us) - self.settled.above
            expired.remove_range(0, self.settled.floor)
            leased = expired & self.leases.outstanding
            self.stale |= leased
            expired -= leased
            if expired:
                event = Expired(self.name, pack(expired), now_us)
                self.apply(event)
                events.append(event)
        if self.parked:
            self._ready(self.parked.pop_due(now_us))
        return events

    def next_tick_us(self) -> int | None:
        soonest = self.leases.next_deadline_us()
        for waiting in (self.parked, self.expiry):
            moment_us = waiting.next_us() if waiting else None
            if moment_us is not None and (soonest is None or moment_us < soonest):
                soonest = moment_us
        return soonest

    def oldest(self, count: int, end: int, now_us: int) -> Dropped | None:
        """Plan to give up the `count` oldest unsettled messages below `end`."""
        oldest = self.settled.without(self.settled.floor, end)
        if len(oldest) > count:
            oldest.remove_range(oldest[count], end)
        if not oldest:
            return None
        return Dropped(self.name, pack(oldest), now_us)

    # --- events -------------------------------------------------------------------------------------------------------

    def apply(self, event: SubscriptionEvent) -> None:
        """Change lasting state by what has happened. Live and in recovery the same."""
        match event:
            case Acked(lease=lease, offsets=packed):
                offsets = unpack(packed)
                self.leases.remove(lease, offsets)
                self._settle(offsets)
            case Granted(offsets=packed):
                offsets = unpack(packed)
                self.parked.pop_due(event.time_us)
                self.parked.discard(offsets)
                # Only recovery comes here, and a bound lease has ended without an event by then: kept, it would fight
                # with the lease under which its messages were granted after that restart.
                if not event.bound:
                    self._lease(event, offsets)
            case Failed():
                self._fail(event, unpack(event.offsets))
            case Released(lease=lease, offsets=packed):
                offsets = unpack(packed)
                self.leases.remove(lease, offsets)
                self._return(offsets)
            case Extended(lease=lease, deadline_us=deadline_us):
                self.leases.extend(lease, deadline_us)
            case DeadLettered(offsets=packed):
                offsets = unpack(packed)
                self.dying.bury(offsets)
                self._settle(offsets)
            case Expired(offsets=packed) | Dropped(offsets=packed):
                self.lose(unpack(packed))
            case Sought(offset=offset):
                self._restart_at(offset)
            case Advanced(offset=offset):
                self.lose(span(self.settled.floor, offset))
            case Configured(config=config):
                self.config = config

    def _lease(self, event: Granted, offsets: BitMap64) -> None:
        self.leases.add(Lease(event.lease, event.consumer, offsets, event.deadline_us, event.bound))

    def _fail(self, event: Failed, offsets: BitMap64) -> None:
        self.leases.remove(event.lease, offsets)
        if self.parked.members.intersect(offsets):
            # In recovery the grant that took them out of there may be missing: it was not journalled, or was damaged.
            self.parked.discard(offsets)
        self.attempts.count_failure(offsets)
        dead = self.attempts.failed_at_least(self.config.retry.attempts_max, offsets)
        self.backlog.park(offsets)
        if dead:
            self._die(dead, event.cause, event.reason)
            offsets = offsets - dead
        self.parked.add(event.due_us, offsets)

    def _die(self, dead: BitMap64, cause: FailureCause, reason: str | None) -> None:
        last = self.dying[-1] if self.dying else None
        if last is not None and (last.cause, last.reason) == (cause, reason):
            failures = self.attempts.failures
            if failures(last.offsets.min()) == failures(dead.min()):
                self.dying.join_last(dead)
                return
        self.dying.add(DeadGroup(dead, cause, reason))

    def _ready(self, offsets: BitMap64) -> None:
        """These may be granted. What no scan has reached is left to the scan, which learns priority and key first."""
        if offsets and offsets.max() >= self.scanned:
            offsets = offsets & span(0, self.scanned)
        self.backlog.put_back(offsets)

    def _return(self, offsets: BitMap64) -> None:
        """These are back from a lease, unhandled. What expired in the meantime is settled by the next tick."""
        gone = offsets & self.stale
        if gone:
            self.stale -= gone
            self.expiry.add(0, gone)
            self.parked.add(0, gone)
            self.backlog.park(gone)
            offsets = offsets - gone
        self._ready(offsets)

    def _settle(self, offsets: BitMap64) -> None:
        self.settled.add(offsets)
        self.attempts.forget(offsets)
        self.parked.discard(offsets)
        self.expiry.discard(offsets)
        if self.stale:
            self.stale -= offsets
        self.backlog.forget(offsets)

    def _restart_at(self, offset: int) -> None:
        self.settled = SettledSet(offset)
        self.attempts = Attempts()
        self.dying.clear()
        self.parked.clear()
        self.forget_live_state()
        self.leases.clear()

    def forget_live_state(self) -> None:
        """As after a restart: what is ready, and what expires, is found by scanning again."""
        self.backlog.clear()
        self.expiry.clear()
        self.stale.clear()
        self.scanned = self.settled.floor

    # --- questions ----------------------------------------------------------------------------------------------------

    def depth(self, end: int) -> int:
        """Unsettled messages below `end`."""
        return self.settled.unsettled_count(end)

    def check(self, visible: int) -> None:
        """Assert that every unsettled offset is in one place; used by tests and the simulator."""
        ready = self.backlog.check()
        places = {
            "ready": ready,
            "leased": self.leases.outstanding,
            "parked": self.parked.members,
            "dying": self.dying.members,
        }
        seen = BitMap64()
        for name, place in places.items():
            assert not seen.intersect(place), f"{self.name}: {seen & place} is {name} and elsewhere too"
            assert not self.settled.above.intersect(place), f"{self.name}: a settled offset is {name}"
            assert not place or place.min() >= self.settled.floor, f"{self.name}: an offset below the floor is {name}"
            assert not place or place.max() < visible, f"{self.name}: an offset beyond the visible end is {name}"
            seen |= place
        missing = self.settled.without(0, min(self.scanned, visible)) - seen
        assert not missing, f"{self.name}: {missing} is nowhere"
        assert not ready or ready.max() < self.scanned, f"{self.name}: {ready.max()} is ready and was never scanned"
        assert self.settled.floor not in self.settled.above, f"{self.name}: the floor is settled"
        assert self.stale <= self.leases.outstanding, f"{self.name}: an expired message is kept and not leased"
        self.leases.check()
        for level in self.attempts.levels:
            assert not level.intersect(self.settled.above), f"{self.name}: attempts of a settled message are kept"
            assert level.min() >= self.settled.floor, f"{self.name}: attempts below the floor are kept"
