"""Oracles over what consumers were given, and what they said about it."""

from __future__ import annotations

from collections import Counter, defaultdict
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
    Fetched,
    Granted,
    Logged,
    Message,
    Nacked,
    Place,
    PublishAcked,
    PublishCalled,
    Redriven,
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

DEAD = ""
"""In the place of a session: it has settled what became a dead letter."""

Held = tuple[str, Place]
"""A place as one subscription sees it."""


def no_grant_after_confirmed_ack(history: Sequence[Entry]) -> Iterator[str]:
    """Once an ack is confirmed, or a transaction with it committed, the message never comes again, unless one seeks."""
    confirmed: dict[Held, float] = {}
    acks: dict[tuple[str, str], tuple[Held, ...]] = {}
    excused = forgetful(history)
    sought_since: set[Held] = set()
    """Called before a seek and perhaps confirmed after it: the seek may have come last."""
    called: set[Held] = set()
    for entry in history:
        event = entry.event
        match event:
            case AckCalled():
                held_now = {(event.subscription, place) for place in event.places}
                called |= held_now
                sought_since -= held_now
            case AckConfirmed():
                holding = [(event.subscription, place) for place in event.places]
                confirmed.update((held, entry.at) for held in holding if held not in sought_since)
            case TransactionCalled():
                acks[event.id, event.caller] = event.acks
                called.update(event.acks)
                sought_since.difference_update(event.acks)
            case TransactionCommitted() if not event.replayed:
                confirmed.update(
                    (held, entry.at) for held in acks.get((event.id, event.caller), ()) if held not in sought_since
                )
            case Sought():
                sought_since |= {h for h in called if (h[1].topic, h[0]) == (event.topic, event.subscription)}
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
            case Reread():
                for held in [h for h in holders if h[1][:2] == (event.topic, event.partition)]:
                    del holders[held]
            case Granted() if modes.get((event.place.topic, event.subscription)) != "broadcast":
                held = (event.subscription, event.place)
                session, until = holders.get(held, ("", 0.0))
                granted_at = entry.at if event.granted_at is None else event.granted_at
                # In key-shared mode a lease ends early when an earlier message of the key goes back.
                if granted_at < until and modes.get((event.place.topic, event.subscription)) != "key-shared":
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
            case TransactionCalled():
                for held in event.acks:
                    holders.pop(held, None)
            case Nacked() | AckCalled():
                for place in event.places:
                    if holders.get((event.subscription, place), ("", 0.0))[0] == event.session:
                        del holders[event.subscription, place]
                if modes.get((event.places[0].topic, event.subscription)) == "key-shared":
                    # A nack sends back what was granted beyond it, of the same key, whoever reads it.
                    for held in [h for h in holders if _same_partition(h, event.subscription, event.places[0])]:
                        del holders[held]
            case SessionEnded() if event.leases_end:
                for held in [h for h, (session, _) in holders.items() if session == event.session]:
                    del holders[held]
            case Sought():
                for held in [h for h in holders if (h[1].topic, h[0]) == (event.topic, event.subscription)]:
                    del holders[held]


def _same_partition(held: Held, subscription: str, place: Place) -> bool:
    return held[0] == subscription and held[1][:2] == place[:2]


def order_per_partition(history: Sequence[Entry]) -> Iterator[str]:
    """A session gets the plain messages of a partition for the first time in the order of their offsets.

    What was fetched ahead and went back, when its session ended or did not get to it in time, comes out of turn.
    Key-shared subscriptions promise order by key instead.
    """
    messages = published(history)
    keyed = {(e.topic, e.subscription) for _, _, e in history if isinstance(e, Subscribed) and e.mode == "key-shared"}
    highest: dict[tuple[str, str, str, int], int] = {}
    fetched: Counter[Held] = Counter()
    for entry in history:
        event = entry.event
        match event:
            case Started():
                highest.clear()
                fetched.clear()
            case Reread():
                for known in [k for k in highest if (k[0], k[3]) == (event.topic, event.partition)]:
                    del highest[known]
            case Fetched():
                fetched.update((event.subscription, place) for place in event.places)
            case SessionEnded() | Sought():
                for known in [k for k in highest if k[:2] == (event.topic, event.subscription)]:
                    del highest[known]
            case Granted() if event.attempt == 1 and event.label in messages and messages[event.label].plain:
                stream = (event.place.topic, event.subscription, event.session, event.place.partition)
                if stream[:2] in keyed:
                    continue
                came_back = fetched[event.subscription, event.place] > 1
                if event.place.offset <= highest.get(stream, -1) and not came_back:
                    yield (
                        f"{event.label} at {event.place} came to {event.session} ({event.subscription}) "
                        f"at {entry.at:.6f}, after offset {highest[stream]}"
                    )
                highest[stream] = max(event.place.offset, highest.get(stream, -1))


def attempts_within_limit(history: Sequence[Entry]) -> Iterator[str]:
    """No message is handed out more often than its subscription allows in a life, and none after it died.

    Failures that were not journalled when the process ended, or could not be since the disk had failed, happen again.
    """
    limits = {(e.topic, e.subscription): e.attempts_max for _, _, e in history if isinstance(e, Subscribed)}
    # In key-shared mode a message comes again, without an attempt, when an earlier one of its key has failed.
    keyed = {(e.topic, e.subscription) for _, _, e in history if isinstance(e, Subscribed) and e.mode == "key-shared"}
    count: Counter[Held] = Counter()
    last: dict[Held, tuple[int, int]] = {}
    lives = 0
    dead: set[Held] = set()
    seeking: set[tuple[str, str]] = set()
    """What was granted meanwhile may be of before the seek or of after it."""
    excused = forgetful(history)
    for entry in history:
        event = entry.event
        match event:
            case Started():
                lives += 1
                seeking.clear()
            case Reread():
                # As with the process, what was leased goes back without an attempt.
                for held in [h for h in count if h[1][:2] == (event.topic, event.partition)]:
                    count[held] -= 1
                    last.pop(held, None)
            case Sought():
                seeking ^= {(event.topic, event.subscription)}
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
                elif (event.place.topic, event.subscription) in keyed | seeking:
                    continue
                elif count[held] > limit * max(1, lives):
                    yield f"{what} was granted {count[held]} times in {lives} lives; {limit} attempts are allowed"
                life, attempt = last.get(held, (entry.life, 0))
                if life == entry.life and event.attempt <= attempt:
                    yield f"{what} was granted as attempt {event.attempt} after attempt {attempt}"
                last[held] = (entry.life, event.attempt)


def everything_settles(history: Sequence[Entry]) -> Iterator[str]:
    """In the end each message of a drained subscription is acknowledged, dead, expired, dropped, lost or in flight."""
    messages = published(history)
    claims: defaultdict[Held, set[str]] = defaultdict(set)
    """Who has settled it, as far as is known: of two sessions that acknowledge it, one may be refused."""
    gone: set[Place] = set()
    acks: dict[tuple[str, str], tuple[Held, ...]] = {}
    places: dict[Place, str] = {}
    addressed: dict[Place, str] = {}
    made_at: dict[tuple[str, str], int] = {}
    skipping: set[tuple[str, str]] = set()
    lost = lost_places(history)
    for number, (_, _, event) in enumerate(history):
        match event:
            case AckCalled() | AckConfirmed():
                for place in event.places:
                    claims[event.subscription, place].add(event.session)
            case AckRefused():
                for place in event.places:
                    claims[event.subscription, place].discard(event.session)
            case Granted():
                # Come again, so that an ack before did not hold; whether it had to is another oracle's question.
                claims.pop((event.subscription, event.place), None)
            case Dead():
                claims[event.subscription, event.place].add(DEAD)
            case TransactionCalled():
                acks[event.id, event.caller] = event.acks
                for held in event.acks:
                    claims[held].add(event.caller)
            case TransactionAborted():
                for held in acks.get((event.id, event.caller), ()):
                    claims[held].discard(event.caller)
            case TransactionCommitted() if event.replayed:
                for held in acks.get((event.id, event.caller), ()):
                    claims[held].discard(event.caller)
            case Dropped():
                gone.update(event.places)
            case PublishAcked():
                places.update(zip(event.places, event.labels, strict=True))
            case Logged():
                places.setdefault(event.place, event.label)
                if event.only is not None:
                    addressed[event.place] = event.only
            case Subscribed():
                made_at.setdefault((event.topic, event.subscription), number)
            case Sought() if not event.backwards:
                # As if it were made anew, somewhere further on.
                made_at[event.topic, event.subscription] = number
                skipping.add((event.topic, event.subscription))
    called_at: dict[str, int] = {}
    for number, (_, _, event) in enumerate(history):
        if isinstance(event, PublishCalled | TransactionCalled):
            for known in event.messages:
                called_at.setdefault(known.label, number)
    subscriptions = {(e.topic, e.subscription): e for _, _, e in history if isinstance(e, Subscribed)}
    for _, _, drained in history:
        if not isinstance(drained, Drained):
            continue
        subscribed = subscriptions[drained.topic, drained.subscription]
        if not subscribed.settles or lost.dead_letters(drained.topic, drained.subscription):
            continue
        for place, label in places.items():
            message = messages.get(label)
            if place.topic != drained.topic or message is None or message.may_expire:
                continue
            if subscribed.only_key is not None and message.key != subscribed.only_key:
                continue
            made = made_at[drained.topic, drained.subscription]
            selective = not subscribed.from_start or (drained.topic, drained.subscription) in skipping
            if selective and called_at.get(label, -1) < made:
                continue
            if addressed.get(place, drained.subscription) != drained.subscription:
                continue
            held = (drained.subscription, place)
            if not claims.get(held) and place not in gone and place not in drained.in_flight and not lost(place):
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


def exclusive_has_one_reader(history: Sequence[Entry]) -> Iterator[str]:
    """Of an exclusive subscription's consumers the next is served only when the one before has begun to leave."""
    exclusive = {
        (e.topic, e.subscription) for _, _, e in history if isinstance(e, Subscribed) and e.mode == "exclusive"
    }
    reader: dict[tuple[str, str], str] = {}
    for entry in history if exclusive else ():
        event = entry.event
        match event:
            case Started():
                reader.clear()
            case SessionEnded():
                if reader.get((event.topic, event.subscription)) == event.session:
                    del reader[event.topic, event.subscription]
            case Granted() if (event.place.topic, event.subscription) in exclusive:
                served = reader.setdefault((event.place.topic, event.subscription), event.session)
                if served != event.session:
                    yield f"{event.label} at {event.place} came to {event.session} while {served} was the one reader"


def dead_letters_once(history: Sequence[Entry]) -> Iterator[str]:
    """A message is among the dead letters of a subscription once, unless the subscription was moved back."""
    # Each consumer of a broadcast has its own; they are not subscriptions by that name to the record.
    durable = {(e.topic, e.subscription) for _, _, e in history if isinstance(e, Subscribed)}
    sought = {(e.topic, e.subscription) for _, _, e in history if isinstance(e, Sought)}
    excused = forgetful(history)
    count = Counter((e.subscription, e.place) for _, _, e in history if isinstance(e, Dead))
    for (subscription, place), times in count.items():
        if times > 1 and (place.topic, subscription) in durable - sought and place[:2] not in excused:
            yield f"{place} is {times} times among the dead letters of {subscription}"


def redriven_once(history: Sequence[Entry]) -> Iterator[str]:
    """Each dead letter that was driven back is in its topic again, once, and comes to the subscription it died on."""
    copies: Counter[tuple[str, str, str]] = Counter()
    only: dict[Place, str] = {}
    for _, _, event in history:
        if isinstance(event, Logged) and event.only is not None:
            copies[event.place.topic, event.only, event.label] += 1
            only[event.place] = event.only
    deaths = Counter((e.place.topic, e.subscription, e.label) for _, _, e in history if isinstance(e, Dead))
    all_back = {(e.topic, e.subscription) for _, _, e in history if isinstance(e, Redriven) and e.all_of_them}
    damaged = bool(forgetful(history)) or lost_places(history).any
    for topic, subscription, label in copies.keys() | deaths.keys():
        back, dead = copies[topic, subscription, label], deaths[topic, subscription, label]
        if damaged or (topic, subscription) not in all_back or back == dead:
            continue
        yield f"{label} died {dead} times on {subscription} of {topic} and came back {back} times"
    for _, _, event in history:
        if isinstance(event, Granted) and only.get(event.place, event.subscription) != event.subscription:
            yield f"{event.label} at {event.place} came to {event.subscription}; it is for {only[event.place]}"


EXPIRY_SLACK_SECONDS = 1.5
"""Time is told in steps, and looked at once a second at the least."""


def times_hold(history: Sequence[Entry]) -> Iterator[str]:
    """Nothing comes before its delay is over or after it has expired, as far as the clock has not jumped."""
    called: dict[str, tuple[float, float, Message]] = {}
    # What comes back from the dead letters has no times any more.
    copies = {e.place for _, _, e in history if isinstance(e, Logged) and e.only is not None}
    if any(isinstance(entry.event, ClockJumped) for entry in history):
        return
    for entry in history:
        event = entry.event
        match event:
            case PublishCalled() | TransactionCalled():
                for message in event.messages:
                    first, _, _ = called.get(message.label, (entry.at, entry.at, message))
                    called[message.label] = (first, entry.at, message)
            case Granted() if event.label in called and event.place not in copies:
                first, last, message = called[event.label]
                granted_at = entry.at if event.granted_at is None else event.granted_at
                if granted_at < first + message.delay:
                    yield f"{event.label} at {event.place} was granted at {granted_at:.6f}, before its delay was over"
                if granted_at > last + message.ttl + EXPIRY_SLACK_SECONDS:
                    yield f"{event.label} at {event.place} was granted at {granted_at:.6f}, long after it had expired"
