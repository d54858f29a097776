"""A table of commands: what each takes, what it may be given by, what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

import msgspec

from sealane.errors import InvalidArgument

if TYPE_CHECKING:
    from sealane.node.session import Session

A = TypeVar("A", bound=msgspec.Struct)

Progress = Callable[[int, int], None]
"""Told how much is done, of how much (0: not known)."""


@dataclass(frozen=True, slots=True)
class Command(Generic[A]):
    """`run` is given the session that asks: it authorises itself, by `session.authorise`, before it does anything."""

    arguments: type[A]
    """Its fields are the arguments; those with a default may be left out, others than them are refused."""
    run: Callable[[Session, A, Progress], Awaitable[Any]]
    """Returns what msgspec can encode."""
    effect: Literal["changes", "reads", "notes"] = "changes"
    """What the audit log keeps of it: each that changes something, which is answered once its entry is durable; how
    often it was read. One that `notes` writes its entries itself, by `session.note`."""
    audited: tuple[str, ...] = ()
    """The arguments whose values may be written down in the audit log: never a secret."""

    def __post_init__(self) -> None:
        assert set(self.audited) <= set(self.arguments.__struct_fields__), f"{self.audited} are not all arguments"

    def told(self, given: A) -> dict[str, str | int]:
        """Of the arguments as they were given: what the audit log may say of them."""
        return {name: told for name in self.audited if (told := _in_words(getattr(given, name))) is not None}

    def read(self, name: str, given: Mapping[str, Any]) -> A:
        """The arguments as they were given. Raises `InvalidArgument`, in which no value is repeated."""
        unknown = sorted(set(given) - set(self.arguments.__struct_fields__))
        if unknown:
            known = ", ".join(self.arguments.__struct_fields__) or "none"
            raise InvalidArgument(unknown[0], f"is not an argument of {name}; there are: {known}")
        try:
            return msgspec.convert(dict(given), self.arguments)
        except msgspec.ValidationError as error:
            raise InvalidArgument(name, str(error)) from None


Commands = dict[str, Command[Any]]


def _in_words(value: object) -> str | int | None:
    """None: nothing was said."""
    if value is None or isinstance(value, str | int):
        return value
    if isinstance(value, Iterable):
        return ", ".join(sorted(map(str, value)))
    return str(value)
