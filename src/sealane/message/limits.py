"""How large a message, a batch and a name may be."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.errors import InvalidArgument


@dataclass(frozen=True, slots=True)
class Limits:
    """Settings with their defaults. Whatever exceeds one is refused with the field, the limit and the value."""

    payload_bytes_max: int = 1024 * 1024
    """One message's payload. Larger things belong in object storage, with their address in the message."""
    batch_bytes_max: int = 8 * 1024 * 1024
    """One batch. It is sealed, written and sent as a whole, so it bounds the memory and the wait of everyone else."""
    batch_messages_max: int = 100_000
    """Messages in a batch: bounds the work that one small request can cause."""
    headers_max: int = 64
    """Headers of one message."""
    header_bytes_max: int = 4096
    """Name and value of one header, in UTF-8."""
    key_bytes_max: int = 1024
    """One message's key."""
    name_chars_max: int = 128
    """Names of topics, subscriptions, exchanges and domains: short enough for a file name with a suffix."""

    def __post_init__(self) -> None:
        for name in ("payload_bytes_max", "batch_bytes_max", "batch_messages_max", "name_chars_max"):
            if getattr(self, name) < 1:
                raise InvalidArgument(f"limits.{name}", f"is {getattr(self, name):,}, at least 1")
        for name in ("headers_max", "header_bytes_max", "key_bytes_max"):
            if getattr(self, name) < 0:
                raise InvalidArgument(f"limits.{name}", f"is {getattr(self, name):,}, at least 0")
