"""Short words for what histories are made of: one topic, one producer, one subscription, unless said otherwise."""

from __future__ import annotations

from tests.simulation.history import (
    AckCalled,
    AckConfirmed,
    Entry,
    Granted,
    Logged,
    LogRead,
    Message,
    Nacked,
    Place,
    PublishAcked,
    PublishCalled,
    Started,
    Subscribed,
)
from tests.simulation.oracles import judge


def history(*events):
    """One event a second; a life begins with each `Started`."""
    entries, life = [], 0
    for second, event in enumerate(events):
        life += isinstance(event, Started)
        entries.append(Entry(float(second), life, event))
    return entries


def broken(*events):
    """The names of the oracles that object."""
    return {violation.oracle for violation in judge(history(*events))}


def at(offset, partition=0, topic="t"):
    return Place(topic, partition, offset)


def called(*labels, producer="p", topic="t", **traits):
    return PublishCalled(producer, topic, tuple(Message(label, **traits) for label in labels))


def acked(label, offset, producer="p", **where):
    return PublishAcked(producer, (label,), (at(offset, **where),))


def granted(label, offset, session="c", **more):
    return Granted("s", session, at(offset), label, **more)


def ack(*offsets, session="c"):
    return AckCalled("s", session, tuple(map(at, offsets)))


def confirmed(*offsets, session="c"):
    return AckConfirmed("s", session, tuple(map(at, offsets)))


def nacked(*offsets, session="c"):
    return Nacked("s", session, tuple(map(at, offsets)))


def logged(*labels):
    """The log of partition 0 as read in the end; None is a gap."""
    found = [Logged(at(offset), label) for offset, label in enumerate(labels) if label is not None]
    return [*found, LogRead("t", 0, 0, len(labels))]


SUBSCRIBED = Subscribed("t", "s")
