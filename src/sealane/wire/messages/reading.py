"""Reading logs as they are, by readers that keep their own positions."""

from __future__ import annotations

from sealane.wire.messages.shapes import Numbered


class Browse(Numbered, tag=80):
    """Stored messages as they are, from an offset, without leasing anything. Answered by `Browsed`."""

    topic: str
    partition: int
    offset: int
    bytes_max: int = 1 << 20
    incarnation: int | None = None
    """Given: refused with `topic-not-found` if the topic was deleted and made again since."""
    stop: int | None = None
    """Given: no batch that begins there or later is of use."""
    packed: bool = False
    """Whether batches may come compressed, as they are stored. Each unpacks to at most what the body of a frame may
    hold, and all of them to about `bytes_max`."""


class Browsed(Numbered, tag=81):
    """The body is batches, one after another; no part: the end of the log."""

    parts: list[tuple[int, int, int, bytes | None]]


class ReadHistory(Numbered, tag=83):
    """What has happened to a partition's messages, from a journal entry on. Answered by `HistoryRead`."""

    topic: str
    partition: int
    entry: int
    bytes_max: int = 1 << 18
    """Of the journal, about."""
    incarnation: int | None = None
    """Given: refused with `topic-not-found` if the topic was deleted and made again since."""
    stop: int | None = None
    """Given: entries from there on are of no use."""


class HistoryRead(Numbered, tag=84):
    """The body is an Arrow IPC stream, a row an event; see `sealane.delivery.history`."""

    next_entry: int
    """Where to go on; the entry that was asked for: there is nothing more yet."""


class DescribeLogs(Numbered, tag=82):
    """What there is to read of topics, by names and patterns. Answered with `[[name, incarnation, [[partition, start,
    end, at, journal_start, journal_end], …]], …]`, in order of the names.
    """

    topics: list[str]
    at_us: int | None = None
    """A moment in µs since 1970: `at` says where the messages begin that were created then or later."""


class Advance(Numbered, tag=63):
    """Settle everything below these offsets, by partition, for a reader that keeps its own position."""

    topic: str
    subscription: str
    positions: dict[int, int]
