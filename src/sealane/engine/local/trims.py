"""What of a partition may be forgotten."""

from __future__ import annotations

from typing import NamedTuple


class Trim(NamedTuple):
    messages_before: int = 0
    journal_before: int = 0
    journal_folded: int = 0
    """Forgets nothing: the journal entry that holds all that came before it, so that a fold begins there."""


UNTRIMMED = Trim()
