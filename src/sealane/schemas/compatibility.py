"""Whether a schema may follow another one: what a mode asks for, and what is in its way."""

from __future__ import annotations

from typing import Literal, get_args

from sealane.schemas.schema import Problem, Schema

Mode = Literal["backward", "forward", "full", "none"]
"""`backward`: readers with the new schema take all that fits the one before. `forward`: readers with the one before
take all that fits the new one. `full`: both. `none`: anything may follow anything."""
MODES: tuple[Mode, ...] = get_args(Mode)

PROBLEMS_MAX = 20
"""Places that an error lists; the rest is counted."""


def incompatibilities(mode: Mode, latest: Schema, new: Schema) -> list[str]:
    """Why the new schema may not follow the latest, a sentence for each place, beginning with its path."""
    if mode == "none":
        return []
    if latest.format != new.format:
        return [f"$: it is {new.format}, and the latest is {latest.format}; only the mode 'none' lets formats change"]
    found: list[str] = []
    if mode in ("backward", "full"):
        found += _told(new.cannot_read(latest, checks=True), "backward")
    if mode in ("forward", "full"):
        found += _told(latest.cannot_read(new, checks=False), "forward")
    if len(found) > PROBLEMS_MAX:
        found = [*found[:PROBLEMS_MAX], f"and {len(found) - PROBLEMS_MAX:,} more"]
    return found


def _told(problems: list[Problem], direction: str) -> list[str]:
    return [f"{path}: {text} ({direction})" for path, text in problems]
