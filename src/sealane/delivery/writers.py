"""Writers whose epochs count up: which one each has published last, however long it was away since."""

from __future__ import annotations

WRITERS_MAX = 100_000
"""The least recently heard writers are forgotten beyond this. They are not forgotten by time: a job may be down for
weeks, and its last epoch must not be published a second time when it comes back."""


class Writers:
    """A writer is known by its digest."""

    __slots__ = ("_epochs",)

    def __init__(self) -> None:
        self._epochs: dict[bytes, int] = {}
        """The least recently heard comes first."""

    def is_done(self, writer: bytes, epoch: int) -> bool:
        last = self._epochs.get(writer)
        return last is not None and epoch <= last

    def remember(self, writer: bytes, epoch: int) -> None:
        last = self._epochs.pop(writer, epoch)
        if len(self._epochs) >= WRITERS_MAX:
            del self._epochs[next(iter(self._epochs))]
        self._epochs[writer] = max(epoch, last)

    def dump(self) -> list[tuple[bytes, int]]:
        return list(self._epochs.items())

    def load(self, dumped: list[tuple[bytes, int]]) -> None:
        self._epochs = dict(dumped)
