"""The oracle of key-shared subscriptions: a key has one consumer at a time, and its messages come in order."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tests.simulation.history import (
    AckCalled,
    AckConfirmed,
    ClockJumped,
    Dead,
    Entry,
    Granted,
    Message,
    Nacked,
    Place,
    PublishAcked,
    Reread,
    SessionEnded,
    Sought,
    Started,
    Subscribed,
    TransactionAborted,
    TransactionCalled,
    TransactionCommitted,
)
from tests.simulation.oracle_log import forgetful, lost_places, published


class Lane(NamedTuple):
    """One key of one partition, as one subscription sees it."""

    topic: str
    subscription: str
    partition: int
    key: str


class _State:
    def __init__(self) -> None:
        self.held: dict[int, tuple[str, float]] = {}
        """Offset → who has it, and until when for sure."""
        self.waiting: set[int] = set()
        """Offsets that must come before any later one does."""
        self.seen: set[int] = set()
        self.unsure = False
        """Some are held until no one knows when: when those leases end, those of later ones end with them."""

    def settle(self, offset: int) -> None:
        self.held.pop(offset, None)
        self.waiting.discard(offset)
        self.seen.add(offset)

    def go_back(self, offsets: Iterable[int]) -> None:
        for offset in list(offsets):
            del self.held[offset]
            self.waiting.add(offset)


class _Keys:
    """Follows every lane of every key-shared subscription through the history."""

    def __init__(self, history: Sequence[Entry]) -> None:
        self.messages = published(history)
        self.shared = {
            (e.topic, e.subscription): e for _, _, e in history if isinstance(e, Subscribed) and e.mode == "key-shared"
        }
        self.dead = {(e.subscription, e.place) for _, _, e in history if isinstance(e, Dead)}
        self.excused = forgetful(history)
        self.lost = lost_places(history)
        # Where dead letters are lost, no one can tell which messages died and which were skipped.
        self.shared = {key: shared for key, shared in self.shared.items() if not self.lost.dead_letters(*key)}
        self.skipping: set[tuple[str, str]] = set()
        """Subscriptions that were moved forwards: what they skip cannot be told from outside."""
        self.lanes: defaultdict[Lane, _State] = defaultdict(_State)
        self.keys: dict[Place, str] = {}

    def lane(self, subscription: str, place: Place) -> Lane | None:
        key = self.keys.get(place)
        if key is None or (place.topic, subscription) not in self.shared:
            return None
        return Lane(place.topic, subscription, place.partition, key)

    def publish(self, place: Place, message: Message) -> None:
        if message.key is None or place in self.keys:
            return
        self.keys[place] = message.key
        for (topic, subscription), subscribed in self.shared.items():
            ordered = message.plain and not message.may_expire and (subscription, place) not in self.dead
            ordered = ordered and not self.lost(place)
            wanted = subscribed.from_start and subscribed.only_key in (None, message.key)
            wanted = wanted and (topic, subscription) not in self.skipping
            if topic == place.topic and ordered and wanted:
                state = self.lanes[Lane(topic, subscription, place.partition, message.key)]
                if place.offset not in state.seen:
                    state.waiting.add(place.offset)

    def go_back(self, lane: Lane, offsets: Iterable[int]) -> None:
        """Return them; those that died or were lost count as settled: no one can tell from outside since when.

        Where a dead letter was lost to damage, any that goes back may have been the one that died.
        """
        state = self.lanes[lane]
        letters_lost = self.lost.dead_letters(lane.topic, lane.subscription)
        for offset in list(offsets):
            place = Place(lane.topic, lane.partition, offset)
            if letters_lost or (lane.subscription, place) in self.dead or self.lost(place):
                state.settle(offset)
            elif offset in state.held:
                state.go_back([offset])

    def grant(self, event: Granted, at: float) -> Iterator[str]:
        message = self.messages.get(event.label)
        if message is None or message.key is None or not message.plain or message.may_expire:
            return
        self.keys[event.place] = message.key
        lane = self.lane(event.subscription, event.place)
        if lane is None or event.place[:2] in self.excused:
            return
        state = self.lanes[lane]
        # A lease that ran out may or may not have been noticed by the node yet: nothing is claimed about it.
        # With it those beyond it went back.
        over = min((offset for offset, (_, until) in state.held.items() if until <= at), default=None)
        if over is not None:
            state.held = {offset: holder for offset, holder in state.held.items() if offset < over}
        what = f"key {message.key!r}: {event.label} at {event.place} came to {event.session} at {at:.6f}"
        # One that is lost to damage while it is held is settled by that: no one can tell from outside since when.
        holders = [who for o, who in state.held.items() if not self.lost(Place(lane.topic, lane.partition, o))]
        others = {session for session, _ in holders if session != event.session}
        if others and not state.unsure:
            yield f"{what} while {', '.join(sorted(others))} held messages of that key"
        earlier = [offset for offset in state.waiting if offset < event.place.offset]
        if earlier:
            yield f"{what} before offset {min(earlier)}"
        state.settle(event.place.offset)
        state.held[event.place.offset] = (event.session, event.held_until or at)


def order_per_key(history: Sequence[Entry]) -> Iterator[str]:
    """In a key-shared subscription one session at a time has a key's messages, and has them in order.

    When a message goes back, by a nack or with the process, the later ones of its key that were out go back with it.
    """
    keys = _Keys(history)
    acks: dict[tuple[str, str], tuple[tuple[str, Place], ...]] = {}
    for entry in history if keys.shared else ():
        event = entry.event
        match event:
            case PublishAcked():
                for label, place in zip(event.labels, event.places, strict=True):
                    keys.publish(place, keys.messages[label])
            case Granted():
                yield from keys.grant(event, entry.at)
            case AckCalled() | AckConfirmed():
                for place in event.places:
                    if lane := keys.lane(event.subscription, place):
                        holder, _ = keys.lanes[lane].held.get(place.offset, (event.session, 0.0))
                        if holder == event.session:
                            # Anyone else's lease is over, and so the ack changes nothing.
                            keys.lanes[lane].settle(place.offset)
            case TransactionCalled():
                acks[event.id, event.caller] = event.acks
                for subscription, place in event.acks:
                    if lane := keys.lane(subscription, place):
                        keys.lanes[lane].settle(place.offset)
            case TransactionAborted() | TransactionCommitted(replayed=True):
                # What it was to acknowledge is still held; until when is no longer known here.
                for subscription, place in acks.get((event.id, event.caller), ()):
                    if lane := keys.lane(subscription, place):
                        keys.lanes[lane].held.clear()
                        keys.lanes[lane].unsure = True
            case Nacked():
                for place in event.places:
                    if lane := keys.lane(event.subscription, place):
                        keys.go_back(lane, [offset for offset in keys.lanes[lane].held if offset >= place.offset])
            case SessionEnded() if event.leases_end:
                for state in keys.lanes.values():
                    first = min((o for o, (session, _) in state.held.items() if session == event.session), default=None)
                    if first is not None:
                        state.held = {offset: holder for offset, holder in state.held.items() if offset < first}
            case Started():
                for lane, state in keys.lanes.items():
                    keys.go_back(lane, list(state.held))
            case Reread():
                for lane in [k for k in keys.lanes if (k.topic, k.partition) == (event.topic, event.partition)]:
                    keys.go_back(lane, list(keys.lanes[lane].held))
            case ClockJumped():
                for state in keys.lanes.values():
                    state.unsure = state.unsure or bool(state.held)
                    state.held.clear()
            case Sought():
                if not event.backwards:
                    keys.skipping.add((event.topic, event.subscription))
                for lane in [k for k in keys.lanes if k[:2] == (event.topic, event.subscription)]:
                    del keys.lanes[lane]
