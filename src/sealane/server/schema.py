"""The settings that exist, by the names under which users write them: read off the dataclasses, never listed twice."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from sealane.server.settings import ServerSettings

PLACES = {
    "node.limits": "limits",
    "node.topics": "topics",
    "node.staging": "staging",
    "node.webhooks": "webhooks",
    "node.security": "security",
}
"""Groups whose users look for them elsewhere than where the code keeps them."""

FORMER_NAMES = {"storage.max_disk_usage": "storage.disk_bytes_max"}
"""Other words for a setting, too far from its name to be found by likeness."""

Scalar = bool | int | float | str | None


@dataclass(frozen=True, slots=True)
class Setting:
    """One value that can be set: its name, and what it may be."""

    name: str
    type: type
    """bool, int, float or str."""
    optional: bool
    choices: tuple[str, ...]
    """The only values allowed; empty: any of the type."""
    default: Scalar

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return "SEALANE_" + self.name.upper().replace(".", "__")

    @property
    def is_size(self) -> bool:
        return self.type is int and "bytes" in self._words

    @property
    def is_duration(self) -> bool:
        return self.type in (int, float) and "seconds" in self._words

    @property
    def range(self) -> tuple[int, int | None]:
        return (0, 65_535) if "port" in self._words else (0, None)

    @property
    def _words(self) -> list[str]:
        return self.name.rpartition(".")[2].split("_")


@cache
def settings() -> Mapping[str, Setting]:
    """Every setting by its name, in the order of the dataclasses."""
    return {setting.name: setting for setting in _settings_of(ServerSettings, "")}


@cache
def sections() -> frozenset[str]:
    """The names that settings have in front of their last dot, and in front of every dot before it."""
    found: set[str] = set()
    for name in settings():
        parts = name.split(".")
        found.update(".".join(parts[:count]) for count in range(1, len(parts)))
    return frozenset(found)


def place(prefix: str, name: str) -> str:
    """The name under which users write a field of a group that they write `prefix`."""
    full = f"{prefix}.{name}" if prefix else name
    return PLACES.get(full, full)


def suggestion(name: str) -> str | None:
    """The setting or section that someone who wrote this name most likely meant."""
    if name in FORMER_NAMES:
        return FORMER_NAMES[name]
    known = [*settings(), *sections()]
    if near := difflib.get_close_matches(name, known, n=1, cutoff=0.75):
        return near[0]
    # The right word in the wrong section.
    same_word = [each for each in settings() if each.rpartition(".")[2] == name.rpartition(".")[2]]
    return same_word[0] if len(same_word) == 1 else None


def _settings_of(group: type, prefix: str, defaults: object | None = None) -> Iterator[Setting]:
    """`defaults` has the values of an instance, where a group differs from others of its class only by them."""
    hints = get_type_hints(group)
    instance = defaults if defaults is not None else group()
    for field in dataclasses.fields(group):
        name = place(prefix, field.name)
        value = getattr(instance, field.name)
        if dataclasses.is_dataclass(hints[field.name]):
            yield from _settings_of(hints[field.name], name, value)
        else:
            yield _setting(name, hints[field.name], value)


def _setting(name: str, hint: Any, default: Scalar) -> Setting:
    alternatives = set(get_args(hint)) if get_origin(hint) in (Union, UnionType) else {hint}
    optional = NoneType in alternatives
    (kind,) = alternatives - {NoneType}
    choices = tuple(get_args(kind)) if get_origin(kind) is Literal else ()
    kind = str if choices else kind
    assert kind in (bool, int, float, str), f"{name} cannot be written in a file: {hint}"
    return Setting(name, kind, optional, choices, default)
