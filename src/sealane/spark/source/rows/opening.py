"""Opening what was sealed for the job, end to end: payloads come as their senders wrote them, on executors.

A message that none of the keys opens keeps its ciphertext, and is told with the reason: one that was sealed for others
is no reason to end a job, and must not be taken for one in the clear either.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from sealane.engine import Stored
from sealane.security.envelopes import OpeningKeys, PrivateKey, open_batch

_KEY_RINGS_CACHED = 8


class Opening:
    """A job's keys."""

    def __init__(self, keys: Iterable[PrivateKey]) -> None:
        self._keys = OpeningKeys(keys)

    def open(self, stored: Sequence[Stored]) -> tuple[list[Stored], dict[int, str]]:
        """The batches with what could be opened; and why the others could not, by row, counted through all of them."""
        opened: list[Stored] = []
        reasons: dict[int, str] = {}
        before = 0
        for base, batch in stored:
            clear, problems = open_batch(batch, self._keys)
            if problems:
                reasons.update({before + row: reason for row, reason in problems.items()})
            opened.append(Stored(base, clear))
            before += len(batch)
        return opened, reasons

    def __repr__(self) -> str:
        return f"<Opening {self._keys!r}>"


@lru_cache(maxsize=_KEY_RINGS_CACHED)
def opening_with(keys: tuple[str, ...]) -> Opening:
    """For private keys in PEM, at least one. Raises `InvalidArgument`, which repeats nothing of them.

    The same for the same keys: the session keys that it has opened serve a worker's next task too.
    """
    return Opening([PrivateKey.from_pem(key) for key in keys])
