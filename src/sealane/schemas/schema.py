"""What a schema can do, whatever its format."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol


@dataclass(frozen=True, slots=True)
class Misfit:
    """The first payload of some that does not fit. Nothing of it is told but the path."""

    index: int
    path: str
    problem: str


class Problem(NamedTuple):
    """Why one schema cannot read all that another one allows, and where."""

    path: str
    text: str


class Schema(Protocol):
    """A schema that was read and found to be one."""

    @property
    def format(self) -> str: ...

    @property
    def identity(self) -> bytes:
        """The same for two schemas that say the same, however they are written."""

    def check(self, payloads: Sequence[bytes]) -> Misfit | None:
        """The first payload that does not fit, if there is one."""

    def cannot_read(self, written: Any, *, checks: bool) -> list[Problem]:
        """Why a reader with this schema cannot take all that fits `written`, which is of the same format.

        With `checks` whatever fits `written` has to fit this one too, as the broker checks it; without, it is enough
        that readers understand it.
        """
