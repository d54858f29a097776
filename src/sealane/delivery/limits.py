"""The limits under which a topic's messages are kept and recognised."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealane.delivery.config import SECOND_US


@dataclass(frozen=True, slots=True)
class DeliveryLimits:
    messages_max: int | None = None
    """Unsettled messages that a partition may hold for its slowest subscription. None: no limit."""
    when_full: Literal["refuse", "drop-oldest"] = "refuse"
    id_window_seconds: float = 600.0
    """How long an id that the caller gave is remembered."""
    id_window_ids_max: int = 1_000_000
    """How many such ids a partition remembers; the oldest go first."""
    transaction_window_seconds: float = 24 * 3600.0
    """How long a transaction's id is remembered: a retry later than this would run again."""

    @property
    def id_window_us(self) -> int:
        return round(self.id_window_seconds * SECOND_US)

    @property
    def transaction_window_us(self) -> int:
        return round(self.transaction_window_seconds * SECOND_US)
