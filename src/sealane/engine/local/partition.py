"""One partition as the local engine knows it while it runs."""

from __future__ import annotations

from collections.abc import Sequence

from sealane.engine.contract import Append, Opened, PartitionKey
from sealane.engine.local.index import LogIndex
from sealane.engine.local.record import MESSAGES
from sealane.engine.local.tail import LogTail
from sealane.engine.local.trims import Trim
from sealane.errors import Fenced, OffsetMismatch, StorageError


class PartitionLogs:
    """A partition's two logs: what is durable (`messages`, `journal`), and where the next append must land.

    The two differ by what has been called and is not durable yet.
    """

    __slots__ = (
        "epoch",
        "journal",
        "journal_folded",
        "key",
        "messages",
        "next_journal",
        "next_offset",
        "sealed",
        "tail",
    )

    def __init__(self, key: PartitionKey) -> None:
        self.key = key
        self.epoch = 0
        """0: nobody has opened it since the engine started."""
        self.sealed = True
        self.messages = LogIndex()
        self.journal = LogIndex()
        self.journal_folded = 0
        self.tail = LogTail()
        self.next_offset = 0
        self.next_journal = 0

    def log(self, kind: int) -> LogIndex:
        return self.messages if kind == MESSAGES else self.journal

    def reserve(self, append: Append) -> None:
        """Check that the append may land, and take its place. Raises without having changed anything."""
        if append.epoch != self.epoch:
            raise Fenced(str(self.key), append.epoch, self.epoch)
        batch = append.batch
        if batch is not None and append.batch_offset != self.next_offset:
            raise OffsetMismatch(str(self.key), append.batch_offset, self.next_offset)
        if append.journal is not None:
            if append.journal_offset != self.next_journal:
                raise OffsetMismatch(f"journal of {self.key}", append.journal_offset, self.next_journal)
            self.next_journal += 1
        if batch is not None:
            self.next_offset += len(batch)

    def forget_reserved(self) -> None:
        """What was called and did not land is not going to."""
        self.next_offset = self.messages.end
        self.next_journal = self.journal.end

    def trim(self, trim: Trim) -> None:
        self.messages.trim(trim.messages_before)
        self.journal.trim(trim.journal_before)
        self.tail.trim(trim.messages_before)
        self.journal_folded = max(self.journal_folded, trim.journal_folded)

    def opened(self, epoch: int) -> Opened:
        return Opened(
            epoch=epoch,
            start=self.messages.start,
            end=self.messages.end,
            journal_start=self.journal.start,
            journal_end=self.journal.end,
            lost=self.messages.lost(),
            journal_lost=self.journal.lost(),
            journal_folded=max(self.journal_folded, self.journal.start),
        )


def reserve_all(logs: list[PartitionLogs], appends: Sequence[Append]) -> None:
    """All or nothing: an append that may not land gives the places back that those before it took."""
    before = [(each, each.next_offset, each.next_journal) for each in logs]
    try:
        for each, append in zip(logs, appends, strict=True):
            each.reserve(append)
    except StorageError:
        for each, offset, journal in before:
            each.next_offset, each.next_journal = offset, journal
        raise
