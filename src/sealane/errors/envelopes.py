"""What is sealed from end to end, and cannot be opened or must not be sealed."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sealane.errors.base import SealaneError


class CannotOpen(SealaneError):
    """Payloads that a consumer's keys do not open; `ids` says of which messages, `reason` why, of the first."""

    def __init__(self, ids: Sequence[UUID], reason: str) -> None:
        self.ids = tuple(ids)
        self.reason = reason
        which = f"message {ids[0]}" if len(ids) == 1 else f"{len(ids):,} messages of this batch ({ids[0]} is the first)"
        super().__init__(f"{which} cannot be opened: {reason}; nack with that reason, or consume with the right key")


class KeyPinMismatch(SealaneError):
    """A recipient's key is not the one that was pinned; nothing was published."""

    def __init__(self, recipient: str, pinned: str, found: str) -> None:
        self.recipient = recipient
        self.pinned = pinned
        self.found = found
        super().__init__(
            f"the key of {recipient!r} is pinned to {pinned}, the node's directory has {found}: nothing was published; "
            "ask its owner, by another way than this node, whether the key was changed"
        )
