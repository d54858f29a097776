"""What a blocking consumer is handed: a message, or a batch of them."""

from __future__ import annotations

from collections.abc import Iterator

from sealane.client.message import LeasedBatch, LeasedMessage, Unopened
from sealane.client.sync.answers import SyncAnswers


class SyncMessage(LeasedMessage):
    """One leased message. `ack`, `nack` or `extend` it, in any thread."""

    __slots__ = ()
    _answers: SyncAnswers

    def ack(self, *, confirm: bool = False) -> None:
        """It is done. Sent with others within milliseconds; with `confirm`, returns when it is durable: after that
        the message is never delivered again on this subscription. Raises `LeaseLost` (with `confirm`) if it was
        no longer this consumer's.
        """
        self._answers.ack(self._delivery, self.offset, confirm=confirm)

    def nack(self, *, delay: float | None = None, reason: str | None = None, confirm: bool = False) -> None:
        """It failed. It comes again after `delay` seconds, or the subscription's back-off; `reason` goes with it to
        the dead letters if this was its last attempt.
        """
        self._answers.nack(self._delivery, self._offsets(), delay=delay, reason=reason, confirm=confirm)

    def extend(self, seconds: float) -> None:
        """Keep the lease that this message came under for `seconds` from now. Raises `LeaseLost` if it is over."""
        self._answers.extend(self._delivery, seconds)


class UnopenedSyncMessage(Unopened, SyncMessage):
    """One leased message that the consumer's keys do not open."""

    __slots__ = ()


class SyncMessageBatch(LeasedBatch):
    """Messages of one partition, leased together."""

    __slots__ = ()
    _answers: SyncAnswers

    @classmethod
    def of(cls, batch: LeasedBatch, answers: SyncAnswers) -> SyncMessageBatch:
        """The same messages, answered by another way."""
        return cls(answers, batch._delivery, batch._parts, batch._problems)

    def __iter__(self) -> Iterator[SyncMessage]:
        """The messages one by one; each can be answered by itself."""
        problems = self._problems
        for part, row, offset, payload in self._rows():
            if problems is not None and offset in problems:
                yield UnopenedSyncMessage(self._answers, self._delivery, part, row, offset, problems[offset])
            else:
                yield SyncMessage(self._answers, self._delivery, part, row, offset, payload)

    def ack(self, *, confirm: bool = False) -> None:
        """All of it is done; see `SyncMessage.ack`."""
        self._answers.ack(self._delivery, self._offsets(), confirm=confirm)

    def nack(self, *, delay: float | None = None, reason: str | None = None, confirm: bool = False) -> None:
        """All of it failed; see `SyncMessage.nack`."""
        self._answers.nack(self._delivery, self._offsets(), delay=delay, reason=reason, confirm=confirm)

    def extend(self, seconds: float) -> None:
        self._answers.extend(self._delivery, seconds)
