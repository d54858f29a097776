"""What must be true of every history, however often the node was killed. Each oracle returns a sentence a violation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from tests.kill.history import History, Kept

Log = Mapping[str, Sequence[Kept]]
"""By topic: all that is stored in the end, by partition and offset."""


@dataclass(frozen=True)
class Shape:
    """What the workload is made of, as far as oracles must know it."""

    subscriptions: tuple[tuple[str, str], ...]
    """(topic, subscription): each has had time to handle everything."""
    in_order: tuple[tuple[str, str], ...] = ()
    """Those with one consumer in all, who is handed messages as they are stored."""
    by_key: tuple[tuple[str, str], ...] = ()
    moves: tuple[tuple[str, str, str], ...] = ()
    """(topic, subscription, target): transactions move each message to the target."""
    dead_letters: dict[tuple[str, str], str] = field(default_factory=dict)
    """Of these subscriptions, with the topic that dead letters go to."""


def violations(history: History, log: Log, shape: Shape) -> list[str]:
    """All of them; empty when the node has kept its word."""
    return [
        *lost(history, log),
        *stored_twice(log),
        *stored_out_of_order(history, log, shape),
        *never_sent(history, log),
        *granted_after_ack(history),
        *granted_what_is_not_stored(history, log),
        *never_granted(history, log, shape),
        *granted_out_of_order(history, shape),
        *keys_out_of_order(history, log, shape),
        *halves_of_transactions(log, shape),
        *dead_letters_unaccounted(history, log, shape),
    ]


def lost(history: History, log: Log) -> Iterator[str]:
    """Every receipt's message is there, at that offset, with that id."""
    places = {(topic, kept.partition, kept.offset): kept for topic, some in log.items() for kept in some}
    names = {(topic, kept.name) for topic, some in log.items() for kept in some}
    for receipt in history.receipts:
        if receipt.offset is None or receipt.partition is None:
            if (receipt.topic, receipt.name) not in names:
                yield f"lost: {receipt.name} of {receipt.topic} was acknowledged and is not stored"
            continue
        kept = places.get((receipt.topic, receipt.partition, receipt.offset))
        place = f"{receipt.topic}:{receipt.partition}@{receipt.offset}"
        if kept is None:
            yield f"lost: {receipt.name} ({receipt.id}) was acknowledged at {place}, where nothing is"
        elif (kept.name, kept.id) != (receipt.name, receipt.id):
            yield f"lost: {receipt.name} ({receipt.id}) was acknowledged at {place}, where {kept.name} ({kept.id}) is"


def stored_twice(log: Log) -> Iterator[str]:
    """Whatever was sent again after a lost connection is stored once."""
    for topic, some in log.items():
        for name, times in Counter(kept.name for kept in some).items():
            if times > 1:
                yield f"stored twice: {name} is in {topic} {times} times"


def stored_out_of_order(history: History, log: Log, shape: Shape) -> Iterator[str]:
    """A producer's messages are in a partition in the order in which it sent them (`producer/number`)."""
    elsewhere = {target for _, _, target in shape.moves} | set(shape.dead_letters.values())
    for topic in log.keys() - elsewhere:
        last: dict[tuple[int, str], int] = {}
        for kept in log[topic]:
            producer, number = kept.name.rsplit("/", 1)
            before = last.get((kept.partition, producer), -1)
            if kept.name in history.unsure:
                continue
            if int(number) <= before:
                yield f"stored out of order: {kept.name} is behind {producer}/{before} in {topic}:{kept.partition}"
            last[kept.partition, producer] = int(number)


def never_sent(history: History, log: Log) -> Iterator[str]:
    known = {receipt.name for receipt in history.receipts} | history.unsure
    for topic, some in log.items():
        yield from (f"never sent: {kept.name} is in {topic}" for kept in some if kept.name not in known)


def granted_after_ack(history: History) -> Iterator[str]:
    """Once an ack, or the transaction it belongs to, was confirmed, nobody is handed the message again."""
    for grant in history.grants:
        since_ns = history.acked.get(grant.settling)
        if since_ns is not None and grant.time_ns > since_ns:
            seconds = (grant.time_ns - since_ns) / 1e9
            yield f"granted after ack: {grant.name} at {grant.settling} to {grant.client}, {seconds:.3f} s later"


def granted_what_is_not_stored(history: History, log: Log) -> Iterator[str]:
    places = {(topic, kept.partition, kept.offset): kept.name for topic, some in log.items() for kept in some}
    for grant in history.grants:
        if grant.topic in log and places.get((grant.topic, grant.partition, grant.offset)) != grant.name:
            yield f"granted what is not stored: {grant.name} at {grant.settling} to {grant.client}"


def never_granted(history: History, log: Log, shape: Shape) -> Iterator[str]:
    """Every subscription has seen every message."""
    granted = {grant.settling for grant in history.grants}
    for topic, subscription in shape.subscriptions:
        for kept in log.get(topic, ()):
            if (topic, subscription, kept.partition, kept.offset) not in granted:
                yield f"never granted: {kept.name} at {topic}:{kept.partition}@{kept.offset} on {subscription}"


def granted_out_of_order(history: History, shape: Shape) -> Iterator[str]:
    """To one consumer alone, each message comes first after those before it in the partition."""
    for topic, subscription in shape.in_order:
        next_offset: dict[int, int] = defaultdict(int)
        for grant in history.first_grants(topic, subscription):
            if grant.offset != next_offset[grant.partition]:
                due = next_offset[grant.partition]
                yield f"granted out of order: {grant.name} at {grant.settling}, when offset {due} was due"
            next_offset[grant.partition] = grant.offset + 1


def keys_out_of_order(history: History, log: Log, shape: Shape) -> Iterator[str]:
    """Of one key, each message is first handed out after those before it, whoever gets them (`key/number`)."""
    for topic, subscription in shape.by_key:
        waiting: dict[str, list[int]] = defaultdict(list)
        for kept in log.get(topic, ()):
            waiting[kept.name.rsplit("/", 1)[0]].append(kept.offset)
        for grant in history.first_grants(topic, subscription):
            due = waiting[grant.name.rsplit("/", 1)[0]]
            if grant.offset not in due:
                continue
            if due[0] != grant.offset:
                yield f"key out of order: {grant.name} at {grant.settling}, when offset {due[0]} was due"
            due.remove(grant.offset)


def halves_of_transactions(log: Log, shape: Shape) -> Iterator[str]:
    """All was moved: so each message is in the target once, or a transaction has settled it without publishing."""
    for topic, _, target in shape.moves:
        there = Counter(kept.name for kept in log.get(target, ()))
        for kept in log.get(topic, ()):
            if there[kept.name] == 0:
                yield f"half a transaction: {kept.name} was settled in {topic} and is not in {target}"
            elif there[kept.name] > 1:
                yield f"half a transaction: {kept.name} is in {target} {there[kept.name]} times"


def dead_letters_unaccounted(history: History, log: Log, shape: Shape) -> Iterator[str]:
    """Each message was acknowledged, or is a dead letter, once; never both and never neither."""
    for (topic, subscription), dead_topic in shape.dead_letters.items():
        dead = Counter(kept.name for kept in log.get(dead_topic, ()))
        for kept in log.get(topic, ()):
            settling = (topic, subscription, kept.partition, kept.offset)
            if dead[kept.name] > 1:
                yield f"dead twice: {kept.name} is in {dead_topic} {dead[kept.name]} times"
            if dead[kept.name] and settling in history.acked:
                yield f"dead and acknowledged: {kept.name} at {settling}"
            if not dead[kept.name] and settling not in history.acking:
                yield f"neither dead nor acknowledged: {kept.name} at {settling}"
