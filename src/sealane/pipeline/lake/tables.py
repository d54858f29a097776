"""The tables there are: where each is, and how its files are laid out."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

Layer = Literal["raw", "clean", "facts", "typed"]

LOG = "_log"
"""Spark and Arrow leave out what begins with an underscore or a dot."""
STAGING = "_staging"


@dataclass(frozen=True, slots=True)
class Table:
    """`layer/name` under the lake, in directories `column=value` for each of `partitioned_by`, in that order."""

    layer: Layer
    name: str
    partitioned_by: tuple[str, ...] = ("domain", "topic", "date")
    asked_as: str = ""
    """What SQL calls it, where another table has its name."""

    @property
    def full_name(self) -> str:
        return f"{self.layer}/{self.name}"

    @property
    def view(self) -> str:
        return self.asked_as or self.name


RAW_MESSAGES = Table("raw", "messages")
RAW_HISTORY = Table("raw", "history")
CLEAN_MESSAGES = Table("clean", "messages", asked_as="clean_messages")
QUARANTINE = Table("clean", "quarantine")
DELIVERIES = Table("facts", "deliveries")
ANOMALIES = Table("facts", "anomalies", ("date",))
ROUTE_WEIGHTS = Table("facts", "route_weights", ("date",))

TABLES = (RAW_MESSAGES, RAW_HISTORY, CLEAN_MESSAGES, QUARANTINE, DELIVERIES, ANOMALIES, ROUTE_WEIGHTS)

_NO_WORD = re.compile(r"\W")


def typed_table(topic: str, version: int, asked_as: str = "") -> Table:
    """A table of one topic, by its full name."""
    return Table("typed", f"{topic}/v{version}", asked_as=asked_as)


def _unused(name: str, used: set[str]) -> str:
    number, free = 1, name
    while free in used:
        number += 1
        free = f"{name}_{number}"
    return free


class Lake:
    """A directory of tables. On a cluster it is one that the driver and all executors reach by the same path."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()

    def path(self, table: Table) -> Path:
        return self.root / table.layer / table.name

    def log_path(self, table: Table) -> Path:
        return self.path(table) / LOG

    def staging_path(self, table: Table, name: str) -> Path:
        return self.path(table) / STAGING / name

    def checkpoint_path(self, query: str) -> Path:
        """Where Spark keeps how far a query is. It and the tables belong together: restore both or none."""
        return self.root / "checkpoints" / query

    def files(self, table: Table) -> list[Path]:
        """Those that are part of the table, in their order."""
        path = self.path(table)
        return sorted(
            file
            for file in path.rglob("*.parquet")
            if not any(part.startswith(("_", ".")) for part in file.relative_to(path).parts)
        )

    def tables(self) -> list[Table]:
        """Those there is something of, Sealane's own first; tables of other packages are known by their directories."""
        known = [table for table in TABLES if self.path(table).is_dir()]
        others = [
            Table(layer, path.name)
            for layer in get_args(Layer)
            if layer != "typed"
            for path in sorted((self.root / layer).glob("[!_.]*"))
            if path.is_dir() and not any(self.path(table) == path for table in known)
        ]
        return known + others + self.typed_tables()

    def typed_tables(self) -> list[Table]:
        """Those of single topics. SQL knows the newest of a topic as `typed_<domain>_<topic>`, one before it with its
        version behind that, and another topic whose name would become the same with a number.
        """
        found: dict[str, list[int]] = {}
        for path in self.root.glob("typed/*/*/v*"):
            if path.is_dir() and path.name[1:].isdigit():
                found.setdefault(f"{path.parent.parent.name}/{path.parent.name}", []).append(int(path.name[1:]))
        tables: list[Table] = []
        for topic, versions in sorted(found.items()):
            name = _NO_WORD.sub("_", f"typed_{topic}").lower()
            for version in sorted(versions, reverse=True):
                asked_as = name if version == max(versions) else f"{name}_v{version}"
                tables.append(typed_table(topic, version, _unused(asked_as, {table.view for table in tables})))
        return tables

    def exists(self, table: Table) -> bool:
        """Whether there is anything in it yet."""
        return bool(self.files(table))
