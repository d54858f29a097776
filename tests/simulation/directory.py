"""The names on a simulated disk: what a process sees, and which of it would be left after a power loss.

A new or removed name is durable once its directory is synced. A rename is durable at once, and so is a new directory.
"""

from __future__ import annotations

import builtins
import os.path
import random
from dataclasses import dataclass

from tests.simulation.sectors import Sectors


@dataclass(frozen=True, slots=True)
class _Change:
    name: str
    now: Sectors | None
    """What the name stands for from here on; None: removed."""


class Directory:
    """All directories of the disk. `names` is what a process sees: full name → content."""

    def __init__(self) -> None:
        self.names: dict[str, Sectors] = {}
        self._durable: dict[str, Sectors] = {}
        self._directories = {""}
        self._changes: list[_Change] = []

    def has_directory(self, name: str) -> bool:
        return _clean(name) in self._directories

    def list(self, directory: str) -> builtins.list[str]:
        prefix = f"{_clean(directory)}/" if _clean(directory) else ""
        inside = (name[len(prefix) :] for name in self.names if name.startswith(prefix))
        return sorted(name for name in inside if "/" not in name)

    def siblings(self, name: str) -> builtins.list[str]:
        """The files of the same directory and kind (what follows the last dot), with their full names."""
        folder, ending = name.rpartition("/")[0], os.path.splitext(name)[1]
        prefix = f"{folder}/" if folder else ""
        return [prefix + other for other in self.list(folder) if os.path.splitext(other)[1] == ending]

    def make(self, name: str) -> None:
        parts = _clean(name).split("/")
        self._directories.update("/".join(parts[: count + 1]) for count in range(len(parts)))

    def create(self, name: str) -> Sectors:
        sectors = Sectors()
        self._change(_Change(name, sectors))
        return sectors

    def remove(self, name: str) -> None:
        self._change(_Change(name, None))

    def rename(self, old: str, new: str) -> None:
        sectors = self.names[old]
        self._change(_Change(new, sectors))
        self._change(_Change(old, None))
        self.sync(new.rpartition("/")[0])

    def sync(self, directory: str) -> None:
        directory = _clean(directory)
        left: list[_Change] = []
        for change in self._changes:
            if change.name.rpartition("/")[0] == directory:
                _apply(self._durable, change)
            else:
                left.append(change)
        self._changes = left

    def lose_power(self, rng: random.Random) -> None:
        """Of the changes that were not synced keep the first few, as a journalling file system does, or any of them."""
        if rng.random() < 0.5:
            kept = self._changes[: rng.randrange(len(self._changes) + 1)]
        else:
            share = rng.random()
            kept = [change for change in self._changes if rng.random() < share]
        for change in kept:
            _apply(self._durable, change)
        self._changes.clear()
        self.names = dict(self._durable)
        for sectors in {id(sectors): sectors for sectors in self.names.values()}.values():
            sectors.lose_power(rng)

    def _change(self, change: _Change) -> None:
        _apply(self.names, change)
        self._changes.append(change)


def _apply(names: dict[str, Sectors], change: _Change) -> None:
    if change.now is None:
        names.pop(change.name, None)
    else:
        names[change.name] = change.now


def _clean(directory: str) -> str:
    return "" if directory == "." else directory.strip("/")
