"""What may happen to messages on their way: leases, queues, quotas, transactions."""

from __future__ import annotations

from sealane.errors.base import SealaneError


class LeaseLost(SealaneError):
    """The message is no longer leased to this consumer (expired, returned or settled); it may be delivered again."""

    def __init__(self, subscription: str, detail: str) -> None:
        self.subscription = subscription
        super().__init__(f"lease lost on subscription {subscription!r}: {detail}")


class StaleSequence(SealaneError):
    """An idempotent producer repeats a batch from so long ago that it cannot be told whether it was stored."""

    def __init__(self, expected: int, got: int) -> None:
        self.expected = expected
        self.got = got
        super().__init__(
            f"producer sequence {got} refused: {expected} is next, and {got} is older than what is remembered; "
            "start a new producer, and check by id what was stored"
        )


class QueueFull(SealaneError):
    """The topic's queue-length limit is reached and it refuses when full; retry once consumers have caught up."""

    def __init__(self, topic: str, limit: int, value: int, unit: str = "messages") -> None:
        self.topic = topic
        self.limit = limit
        self.value = value
        super().__init__(
            f"topic {topic!r} is full: {value:,} unsettled {unit}, the limit is {limit:,}; "
            "retry when consumers have caught up, or raise the topic's limit"
        )


class RateLimited(SealaneError):
    """A quota is used up for now, and nothing was done; the same may be asked again after `retry_after_seconds`.

    `subject` says whose quota it is, `what` of which (messages, bytes or requests) it is short, `limit` how many of
    them it has a second.
    """

    def __init__(self, subject: str, what: str, limit: float, retry_after_seconds: float) -> None:
        self.subject = subject
        self.what = what
        self.limit = limit
        self.retry_after_seconds = retry_after_seconds
        super().__init__(
            f"{subject} has used up its {limit:,.0f} {what} a second; nothing was done, try again in "
            f"{retry_after_seconds:.3g} s, or have its quota raised (`sealane quota set`)"
        )


class TransactionAborted(SealaneError):
    """Nothing of this transaction was published or acknowledged; `__cause__` tells why."""

    def __init__(self, transaction: str, problem: str) -> None:
        self.transaction = transaction
        super().__init__(f"transaction {transaction!r} was not committed: {problem}")


class StagedPartLost(SealaneError):
    """Not all that is to be published is staged: nothing was published. `part` says of what, in hexadecimal; `expected`
    and `found` how many batches there should be, and are.
    """

    def __init__(self, part: str, expected: int, found: int) -> None:
        self.part = part
        self.expected = expected
        self.found = found
        super().__init__(
            f"part {part} cannot be published: it should have {expected:,} batches, {found:,} are staged; it was "
            "dropped, was staged too long ago (staging.keep_seconds), or never came whole; stage it again as a new part"
        )
