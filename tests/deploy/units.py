"""systemd's unit files, read as systemd does: a key may come again, and then has several values."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path


def read_unit(path: Path) -> dict[str, dict[str, list[str]]]:
    """Sections, their keys, and each key's values in their order."""
    found: dict[str, dict[str, list[str]]] = {}
    section: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith(("#", ";")):
            continue
        if line.startswith("["):
            section = found.setdefault(line.strip("[]"), defaultdict(list))
        else:
            key, _, value = line.partition("=")
            section[key].append(value)
    return found
