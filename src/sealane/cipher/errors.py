"""What goes wrong between a sender or receiver and its broker."""

from __future__ import annotations

from collections.abc import Sequence

from sealane.errors import SealaneError, Unavailable

IDS_TOLD = 5
"""Of many messages the first few are named; the rest is counted."""


class CannotDecrypt(SealaneError):
    """A message that this key does not open, or that was changed on its way; `message_id` and `reason` say which and
    why.
    """

    def __init__(self, message_id: str, reason: str) -> None:
        self.message_id = message_id
        self.reason = reason
        super().__init__(f"message {message_id} cannot be decrypted: {reason}")


class Refused(SealaneError):
    """The broker answered with an error; `command` says to what, `answer` is what it said."""

    def __init__(self, command: str, answer: str) -> None:
        self.command = command
        self.answer = answer
        super().__init__(f"the broker refuses `{command}`: {answer}")


class UnexpectedAnswer(SealaneError):
    """What came is no line of the protocol, or none that can come now."""

    def __init__(self, problem: str) -> None:
        super().__init__(f"{problem}; is a cipher door at that address?")


class ConnectionLost(Unavailable):
    """The connection ended, or the broker did not answer in time: what it was told last may have been done or not."""


class NotAcknowledged(Unavailable):
    """Messages were sent as often as they may be, and the broker has acknowledged none of these; `pending` has their
    ids. They may be stored nevertheless: sent again under the same ids, each is stored once.
    """

    def __init__(self, pending: Sequence[str], tries: int, cause: str) -> None:
        self.pending = tuple(pending)
        super().__init__(f"{tell_ids(self.pending)} not acknowledged after {tries} tries: {cause}")


class OutputInUse(SealaneError):
    """Another receiver writes to the same file; `path` says which."""

    def __init__(self, path: str) -> None:
        self.path = path
        super().__init__(f"another receiver writes to {path!r}: stop it, or give this one a file of its own")


class OutputFull(SealaneError):
    """A file is as large as it may become; `path` and `limit` say which, and how large. Nothing of it is lost."""

    def __init__(self, path: str, limit: int) -> None:
        self.path = path
        self.limit = limit
        super().__init__(
            f"{path!r} would have more than {limit:,} bytes, all of which are written again with each delivery: "
            "move it away, or receive into a .jsonl file, which is appended to"
        )


def tell_ids(ids: Sequence[str]) -> str:
    """`1 message (7d0f…)`, or several, of which the first few are named."""
    named = ", ".join(ids[:IDS_TOLD]) + (", …" if len(ids) > IDS_TOLD else "")
    return f"{len(ids):,} message{'' if len(ids) == 1 else 's'} ({named})"
