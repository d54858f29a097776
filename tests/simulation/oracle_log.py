"""Oracles over what was published and what the log holds in the end."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.simulation.history import (
    Damaged,
    DeclaredLost,
    Entry,
    Flushed,
    Granted,
    Logged,
    LogRead,
    Measured,
    Message,
    Place,
    PublishAcked,
    PublishCalled,
    PublishRefused,
    Sought,
    TransactionAborted,
    TransactionCalled,
    TransactionCommitted,
)

COORDINATOR = "_transactions"
"""The topic whose journal remembers which transactions are done."""


def no_acknowledged_loss(history: Sequence[Entry]) -> Iterator[str]:
    """Every message whose publish was acknowledged is at its place in the log, unless that was declared damaged."""
    read = {(e.topic, e.partition): e for _, _, e in history if isinstance(e, LogRead)}
    logged = {e.place: e for _, _, e in history if isinstance(e, Logged)}
    lost = lost_places(history)
    for entry in history:
        if not isinstance(entry.event, PublishAcked):
            continue
        for label, place in zip(entry.event.labels, entry.event.places, strict=True):
            span = read.get((place.topic, place.partition))
            if span is None or place.offset < span.start or lost(place):
                continue
            found = logged.get(place)
            if found is None:
                yield f"{label} was acknowledged at {place} (at {entry.at:.6f}) and is not in the log"
            elif found.label != label:
                yield f"{label} was acknowledged at {place} (at {entry.at:.6f}) and {found.label} is there"
    yield from _flushed_loss(history, lost)


def _flushed_loss(history: Sequence[Entry], lost: lost_places) -> Iterator[str]:
    """What a producer flushed is somewhere in its topic, unless some of that was trimmed or damaged."""
    whole: dict[str, bool] = {}
    seen: set[tuple[str, str]] = set()
    for _, _, event in history:
        if isinstance(event, LogRead):
            whole[event.topic] = whole.get(event.topic, True) and event.start == 0
        elif isinstance(event, Logged | Granted):
            seen.add((event.place.topic, event.label))
    for entry in history:
        if isinstance(entry.event, Flushed) and whole.get(entry.event.topic, False) and not lost.any:
            for label in entry.event.labels:
                if (entry.event.topic, label) not in seen:
                    yield f"{label} was flushed (at {entry.at:.6f}) and is not in the log of {entry.event.topic}"


def damage_is_declared_only_after_damage(history: Sequence[Entry]) -> Iterator[str]:
    """The broker declares offsets lost only when data has rotted."""
    damaged = False
    for entry in history:
        damaged = damaged or isinstance(entry.event, Damaged)
        if isinstance(entry.event, DeclaredLost) and not damaged:
            yield f"declared lost although nothing was damaged: {entry.event}"


def nothing_invented(history: Sequence[Entry]) -> Iterator[str]:
    """Whatever is delivered or logged was published, byte for byte, and not refused or aborted."""
    called: Counter[str] = Counter()
    refused: Counter[str] = Counter()
    acknowledged: set[str] = set()
    in_transaction: dict[str, tuple[str, ...]] = {}
    for _, _, event in history:
        match event:
            case PublishCalled():
                called.update(message.label for message in event.messages)
            case TransactionCalled():
                in_transaction[event.id] = tuple(message.label for message in event.messages)
                called.update(in_transaction[event.id])
            case PublishRefused():
                refused.update(event.labels)
            case TransactionAborted():
                refused.update(in_transaction.get(event.id, ()))
            case PublishAcked():
                acknowledged.update(event.labels)
            case TransactionCommitted():
                acknowledged.update(in_transaction.get(event.id, ()))
    for entry in history:
        event = entry.event
        if not isinstance(event, Granted | Logged):
            continue
        what = f"{event.label} at {event.place} ({type(event).__name__.lower()} at {entry.at:.6f})"
        if not event.intact:
            yield f"{what} is not what was published"
        elif not called[event.label]:
            yield f"{what} was never published"
        elif called[event.label] <= refused[event.label] and event.label not in acknowledged:
            yield f"{what} was refused each time it was published"


def stored_once(history: Sequence[Entry]) -> Iterator[str]:
    """A message with an id of its own is in the log once; others at most as often as they were published."""
    allowed: Counter[tuple[str, str]] = Counter()
    once: set[str] = set()
    for _, _, event in history:
        if isinstance(event, PublishCalled):
            allowed.update((event.topic, message.label) for message in event.messages)
            once.update(message.label for message in event.messages if message.once)
    places: defaultdict[tuple[str, str], set[Place]] = defaultdict(set)
    excused = forgetful(history)
    # Where dead letters came back there are copies; how many there may be is another oracle's question.
    copies = {event.place for _, _, event in history if isinstance(event, Logged) and event.only is not None}
    lost = lost_places(history)
    for _, _, event in history:
        if not isinstance(event, Logged | Granted) or event.place[:2] in excused:
            continue
        if event.place not in copies and not lost(event.place):
            places[event.place.topic, event.label].add(event.place)
    for (topic, label), found in places.items():
        limit = 1 if label in once else allowed[topic, label]
        if limit and len(found) > limit:
            yield f"{label} is stored {len(found)} times, at {', '.join(map(str, sorted(found)))}; {limit} is the most"


def producer_order(history: Sequence[Entry]) -> Iterator[str]:
    """What a producer published after an acknowledgement lies behind what was acknowledged."""
    acked: dict[tuple[str, str, int], int] = {}
    floor: dict[tuple[str, tuple[str, ...]], dict[tuple[str, str, int], int]] = {}
    for entry in history:
        event = entry.event
        if isinstance(event, PublishCalled):
            labels = tuple(message.label for message in event.messages)
            if not any(message.once for message in event.messages):
                # A repeated message keeps its first place, so that only those sent once have an order.
                floor[event.producer, labels] = {k: v for k, v in acked.items() if k[0] == event.producer}
        elif isinstance(event, PublishAcked):
            before = floor.pop((event.producer, event.labels), {})
            for label, place in zip(event.labels, event.places, strict=True):
                log = (event.producer, place.topic, place.partition)
                if place.offset <= before.get(log, -1):
                    yield f"{label} landed at {place}, before what {event.producer} had published earlier"
                acked[log] = max(acked.get(log, -1), place.offset)


def transactions_all_or_nothing(history: Sequence[Entry]) -> Iterator[str]:
    """A transaction's messages are all in the log, once, or none is; the outcome its caller was told is true."""
    called: dict[str, list[TransactionCalled]] = defaultdict(list)
    told: dict[str, set[str]] = defaultdict(set)
    count: Counter[str] = Counter()
    ends_read = False
    lost = lost_places(history)
    for _, _, event in history:
        match event:
            case TransactionCalled():
                called[event.id].append(event)
            case TransactionCommitted():
                told[event.id].add("committed")
            case TransactionAborted():
                told[event.id].add("aborted")
            case Logged() if event.only is None:
                count[event.label] += 1
            case LogRead():
                ends_read = True
    if not ends_read:
        return
    again = _came_again(history)
    for id, calls in called.items():
        found = {message.label: count[message.label] for message in calls[0].messages}
        missing = [label for label, times in found.items() if not times]
        repeated = [label for label, times in found.items() if times > 1]
        if repeated and not any(topic == COORDINATOR for topic, _ in forgetful(history)):
            yield f"transaction {id}: {', '.join(repeated)} became visible more than once"
        elif missing and len(missing) < len(found) and not lost.any:
            yield f"transaction {id}: half of it is there; {', '.join(missing)} is not"
        elif missing and "committed" in told[id] and not lost.any:
            yield f"transaction {id} was committed and {', '.join(missing)} is not there"
        elif found and not missing and "committed" not in told[id] and len(calls) == 1 and "aborted" in told[id]:
            yield f"transaction {id} was aborted and {', '.join(found)} is there"
        elif found and not missing and len(calls) == 1:
            for subscription, place in calls[0].acks:
                if (id, subscription, place) in again:
                    yield f"transaction {id} is in the log, and {place}, which it acknowledged, came again"


def _came_again(history: Sequence[Entry]) -> set[tuple[str, str, Place]]:
    """What transactions acknowledged and was granted in a later life, though nobody sought."""
    excused = forgetful(history)
    waiting: dict[tuple[str, Place], tuple[str, int]] = {}
    found: set[tuple[str, str, Place]] = set()
    for _, life, event in history:
        match event:
            case TransactionCalled():
                waiting.update((held, (event.id, life)) for held in event.acks)
            case Sought():
                for held in [h for h in waiting if (h[1].topic, h[0]) == (event.topic, event.subscription)]:
                    del waiting[held]
            case Granted() if (event.subscription, event.place) in waiting and event.place[:2] not in excused:
                id, since = waiting[event.subscription, event.place]
                if life > since:
                    found.add((id, event.subscription, event.place))
    return found


def memory_bounded(history: Sequence[Entry]) -> Iterator[str]:
    """Nothing that was measured is above its limit."""
    for entry in history:
        if isinstance(entry.event, Measured) and entry.event.value > entry.event.limit:
            yield f"{entry.event.name} is {entry.event.value:g} at {entry.at:.6f}; the limit is {entry.event.limit:g}"


class lost_places:  # noqa: N801 - it reads as the question it answers: lost(place)
    """Which places the broker declared lost. (Whether it had a reason to is another oracle's question.)"""

    def __init__(self, history: Sequence[Entry]) -> None:
        declared = [entry.event for entry in history if isinstance(entry.event, DeclaredLost)]
        self._spans = [span for span in declared if not span.journal]

    @property
    def any(self) -> bool:
        return bool(self._spans)

    def dead_letters(self, topic: str, subscription: str) -> bool:
        """Whether some of the subscription's dead letters are lost: no one can tell which messages they were."""
        name = f"{topic.partition('#')[0]}.{subscription}.dead"
        return any(span.topic.partition("#")[0] == name for span in self._spans)

    def __call__(self, place: Place) -> bool:
        return any(
            (span.topic, span.partition) == place[:2] and span.start <= place.offset < span.stop for span in self._spans
        )


def forgetful(history: Sequence[Entry]) -> set[tuple[str, int]]:
    """The partitions (topic, number) whose journal was declared damaged: promises about acks do not hold there."""
    declared = (entry.event for entry in history if isinstance(entry.event, DeclaredLost))
    return {(span.topic, span.partition) for span in declared if span.journal}


def published(history: Sequence[Entry]) -> dict[str, Message]:
    """Every message that anyone tried to publish, by label."""
    found: dict[str, Message] = {}
    for _, _, event in history:
        if isinstance(event, PublishCalled | TransactionCalled):
            found.update((message.label, message) for message in event.messages)
    return found
