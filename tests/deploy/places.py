"""Where the files for running a node are, and what they share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from sealane.cli.main import COMMANDS
from sealane.server.settings import DoorsSettings

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"

DOOR_PORTS = {field.name: getattr(DoorsSettings(), field.name).port for field in fields(DoorsSettings)}
"""The default port of each door, by its name."""


def check_command(words: Sequence[str]) -> None:
    """Let the command line's own parser read what follows `sealane`; nothing is run. Raises what it would say."""
    command = next(each for each in COMMANDS if each.name == words[0]).load()
    rest = list(words[1:])
    while hasattr(command, "commands"):
        command = command.commands[rest.pop(0)]
    command.make_context(" ".join(words), rest)
