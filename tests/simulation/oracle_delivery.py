"""Oracles over what consumers were given, and what they said about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.simulation.history import (
    AckCalled,
    AckConfirmed,
    AckRefused,
    ClockJumped,
    Dead,
    Drained,
    Dropped,
    Entry,
    Extended,
    Granted,
    Logged,
    Nacked,
    Place,
    PublishAcked,
    SessionEnded,
    Sought,
    Started,
    Subscribed,
    TransactionAborted,
    TransactionCalled,
    TransactionCommitted,
)
from tests.simulation.oracle_log import forgetful, lost_places, published

Held = tuple[str, Place]
"""A place as one subscription sees it."""


def no_grant_after_confirmed_ack(history: Sequence[Entry]) -> Iterator[str]:
    """Once an ack is confirmed, or a transaction with it committed, the message never comes again, unless one seeks."""
    confirmed: dict[Held, float] = {}
    acks: dict[str, tuple[Held, ...]] = {}
    excused = forgetful(history)
    for entry in history:
        event = entry.event
        match event:
            case AckConfirmed():
                confirmed.update(((event.subscription, place), entry.at) for place in event.places)
            case TransactionCalled():
                acks[event.id] = event.acks
            case TransactionCommitted():
                confirmed.update((held, entry.at) for held in acks.get(event.id, ()))
            case Sought():
                for held in [h for h in confirmed if (h[1].topic, h[0]) == (event.topic, event.subscription)]:
                    del confirmed[held]
            case Granted():
                since = confirmed.get((event.subscription, event.place))
                granted_at = entry.at if event.granted_at is None else event.granted_at
                if since is not None and granted_at >= since and event.place[:2] not in excused:
                    yield (
                        f"{event.label} at {event.place} was granted to {event.session} ({event.subscription}) "
                        f"at {granted_at:.6f}, after its ack was confirmed at {since:.6f}"
                    )


def one_holder(history: Sequence[Entry]) -> Iterator[str]:
    """While a lease runs no one else gets the message, and only its holder can acknowledge it."""
    holders: dict[Held, tuple[str, float]] = {}
    modes = {(e.topic, e.subscription): e.mode for _, _, e in history if isinstance(e, Subscribed)}
    for entry in history:
        event = entry.event
        match event:
            case Started() | ClockJumped():
                # Leases end with the process; and after a jump no one outside can tell which are over.
                holders.clear()
            case Granted() if modes.get((event.place.topic, event.subscription)) != "broadcast":
                held = (event.subscription, event.place)
                session, until = holders.get(held, ("", 0.0))
                granted_at = entry.at if event.granted_at is None else event.granted_at
                if granted_at < until:
                    yield (
                        f"{event.label} at {event.place} was granted to {event.session} ({event.subscription}) "
                        f"at {granted_at:.6f} while {session} held it until {until:.6f}"
                    )
                holders[held] = (event.session, event.held_until or 0.0)
            case Extended():
                for place in event.places:
                    holders[event.subscription, place] = (event.session, event.held_until)
            case AckConfirmed():
                for place in event.places:
                    session, until = holders.pop((event.subscription, place), (event.session, 0.0))
                    if session != event.session and entry.at < until:
                        yield f"{event.session} acknowledged {place} ({event.subscription}) while {session} held it"
            case Nacked() | AckCalled():
                for place in event.places:
                    if holders.get((event.subscription, place), ("", 0.0))[0] == event.session:
                        del holders[event.subscription, place]
            case Sought():
                for held in [h for h in holders if (h[1].topic, h[0]) == (event.topic, event.subscription)]:
                    del holders[held]


def order_per_partition(history: Sequence[Entry]) -> Iterator[str]:
    """A session gets the plain messages of a partition for the first time in the order of their offsets.

    What another session had fetched ahead may come later, out of turn, once that session has ended.
    """
    messages = published(history)
    highest: dict[tuple[str, str, str, int], int] = {}
    for entry in history:
        event = entry.event
        match event:
            case Started():
                highest.clear()
            case SessionEnded() | Sought():
                for known in [k for k in highest if k[:2] == (event.topic, event.subscription)]:
                    del highest[known]
            case Granted() if event.attempt == 1 and event.label in messages and messages[event.label].plain:
                stream = (event.place.topic, event.subscription, event.session, event.place.partition)
                if event.place.offset <= highest.get(stream, -1):
                    yield (
                        f"{event.label} at {event.place} came to {event.session} ({event.subscription}) "
                        f"at {entry.at:.6f}, after offset {highest[stream]}"
                    )
                highest[stream] = max(event.place.offset, highest.get(stream, -1))


def attempts_within_limit(history: Sequence[Entry]) -> Iterator[str]:
    """No message is handed out more often than its subscription allows, but for one more in each later life."""
    limits = {(e.topic, e.subscription): e.attempts_max for _, _, e in history if isinstance(e, Subscribed)}
    count: Counter[Held] = Counter()
    last: dict[Held, tuple[int, int]] = {}
    lives = 0
    dead: set[Held] = set()
    excused = forgetful(history)
    for entry in history:
        event = entry.event
        match event:
            case Started():
                lives += 1
            case Sought():
                for held in [h for h in count if (h[1].topic, h[0]) == (event.topic, event.subscription)]:
                    del count[held]
                    last.pop(held, None)
            case Dead():
                dead.add((event.subscription, event.place))
            case Granted():
                held = (event.subscription, event.place)
                limit = limits.get((event.place.topic, event.subscription))
                if limit is None or event.place[:2] in excused:
                    continue
                what = f"{event.label} at {event.place} ({event.subscription}, at {entry.at:.6f})"
                count[held] += 1
                if held in dead:
                    yield f"{what} was granted after it was found among the dead letters"
                if event.attempt > limit:
                    yield f"{what} was granted as attempt {event.attempt} of {limit}"
                elif count[held] > limit + max(0, lives - 1):
                    yield f"{what} was granted {count[held]} times in {lives} lives; {limit} attempts are allowed"
                life, attempt = last.get(held, (entry.life, 0))
                if life == entry.life and event.attempt <= attempt:
                    yield f"{what} was granted as attempt {event.attempt} after attempt {attempt}"
                last[held] = (entry.life, event.attempt)


def everything_settles(history: Sequence[Entry]) -> Iterator[str]:
    """In the end each message of a drained subscription is acknowledged, dead, expired, dropped, lost or in flight."""
    messages = published(history)
    settled: set[Held] = set()
    gone: set[Place] = set()
    acks: dict[str, tuple[Held, ...]] = {}
    places: dict[Place, str] = {}
    made_at: dict[tuple[str, str], int] = {}
    lost = lost_places(history)
    for number, (_, _, event) in enumerate(history):
        match event:
            case AckCalled() | AckConfirmed():
                settled.update((event.subscription, place) for place in event.places)
            case AckRefused():
                settled.difference_update((event.subscription, place) for place in event.places)
            case Granted() if (event.subscription, event.place) in settled:
                # It came again, so that the ack before did not hold; whether it had to is another oracle's question.
                settled.discard((event.subscription, event.place))
            case Dead():
                settled.add((event.subscription, event.place))
            case TransactionCalled():
                acks[event.id] = event.acks
                settled.update(event.acks)
            case TransactionAborted():
                settled.difference_update(acks.get(event.id, ()))
            case Dropped():
                gone.update(event.places)
            case PublishAcked():
                places.update(zip(event.places, event.labels, strict=True))
            case Logged():
                places.setdefault(event.place, event.label)
            case Subscribed():
                made_at.setdefault((event.topic, event.subscription), number)
    acked_at = {
        place: number
        for number, (_, _, event) in enumerate(history)
        if isinstance(event, PublishAcked)
        for place in event.places
    }
    subscriptions = {(e.topic, e.subscription): e for _, _, e in history if isinstance(e, Subscribed)}
    for _, _, drained in history:
        if not isinstance(drained, Drained):
            continue
        subscribed = subscriptions[drained.topic, drained.subscription]
        if not subscribed.settles:
            continue
        for place, label in places.items():
            message = messages.get(label)
            if place.topic != drained.topic or message is None or message.may_expire:
                continue
            if subscribed.only_key is not None and message.key != subscribed.only_key:
                continue
            made = made_at[drained.topic, drained.subscription]
            if not subscribed.from_start and acked_at.get(place, -1) < made:
                continue
            held = (drained.subscription, place)
            if held not in settled and place not in gone and place not in drained.in_flight and not lost(place):
                yield f"{label} at {place} is neither settled nor in flight on {drained.subscription}"


def filters_hold(history: Sequence[Entry]) -> Iterator[str]:
    """A subscription with a filter gets only what the filter takes."""
    messages = published(history)
    only = {(e.topic, e.subscription): e.only_key for _, _, e in history if isinstance(e, Subscribed)}
    for _, _, event in history:
        if isinstance(event, Granted):
            wanted = only.get((event.place.topic, event.subscription))
            message = messages.get(event.label)
            if wanted is not None and message is not None and message.key != wanted:
                yield f"{event.label} with key {message.key!r} came to {event.subscription}, which takes {wanted!r}"
