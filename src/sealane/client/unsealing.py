"""Opening what is consumed, end to end: payloads come as their sender wrote them, or with why they cannot be had."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from sealane.client.opened import Opened
from sealane.errors import InvalidArgument
from sealane.node import Part
from sealane.security.envelopes import OpeningKeys, PrivateKey, open_batch

Keys = OpeningKeys | PrivateKey | Iterable[PrivateKey]


class Unsealing:
    """A consumer's keys, and what it takes."""

    def __init__(self, keys: Keys, *, require_sealed: bool) -> None:
        self._keys = keys if isinstance(keys, OpeningKeys) else OpeningKeys(keys)
        self._require_sealed = require_sealed

    def open(self, opened: Opened) -> None:
        """Messages that are about to be handed out one by one."""
        opened.part, problems = self._open_part(opened.part)
        opened.problems = problems or None

    def open_parts(self, parts: Iterable[Part]) -> tuple[list[Part], dict[int, str]]:
        """Messages that are handed out together, and by offset why some of them could not be opened."""
        opened: list[Part] = []
        reasons: dict[int, str] = {}
        for part in parts:
            clear, problems = self._open_part(part)
            opened.append(clear)
            reasons.update({int(part.offsets[row]): reason for row, reason in problems.items()})
        return opened, reasons

    def _open_part(self, part: Part) -> tuple[Part, Mapping[int, str]]:
        batch, problems = open_batch(part.batch, self._keys, require_sealed=self._require_sealed)
        return (part if batch is part.batch else Part(part.offsets, batch)), problems


def unsealing(keys: Keys | None, *, require_sealed: bool) -> Unsealing | None:
    """None for a consumer that takes messages as they are stored."""
    if keys is not None:
        return Unsealing(keys, require_sealed=require_sealed)
    if require_sealed:
        raise InvalidArgument("require_sealed", "needs `keys`: what is sealed is opened with one")
    return None
