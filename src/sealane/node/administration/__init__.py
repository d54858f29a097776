"""Administering a node: commands by name, with arguments that are checked, for whoever may give them.

Each module here adds its commands to a table of its own; `COMMANDS` is all of them. They come by `Session.administer`,
so by the native door, by other doors and by the command line alike.
"""

from __future__ import annotations

from sealane.node.administration.authority import COMMANDS_OF_AUTHORITY
from sealane.node.administration.credentials import COMMANDS_OF_CREDENTIALS
from sealane.node.administration.directory import COMMANDS_OF_DIRECTORY
from sealane.node.administration.table import Command, Commands

COMMANDS: Commands = {**COMMANDS_OF_AUTHORITY, **COMMANDS_OF_CREDENTIALS, **COMMANDS_OF_DIRECTORY}
"""By name, such as `ca.issue`."""

__all__ = ["COMMANDS", "Command", "Commands"]
