"""Administering a node: commands by name, with arguments that are checked, for whoever may give them.

Each module here adds its commands to a table of its own; `COMMANDS` is all of them. They come by `Session.administer`,
so by the native door, by other doors and by the command line alike.
"""

from __future__ import annotations

from sealane.node.administration.audit import COMMANDS_OF_AUDIT
from sealane.node.administration.authority import COMMANDS_OF_AUTHORITY
from sealane.node.administration.credentials import COMMANDS_OF_CREDENTIALS
from sealane.node.administration.directory import COMMANDS_OF_DIRECTORY
from sealane.node.administration.grants import COMMANDS_OF_GRANTS
from sealane.node.administration.notes import COMMANDS_OF_NOTES
from sealane.node.administration.quotas import COMMANDS_OF_QUOTAS
from sealane.node.administration.schemas import COMMANDS_OF_SCHEMAS
from sealane.node.administration.sealing import COMMANDS_OF_SEALING
from sealane.node.administration.table import Command, Commands
from sealane.node.administration.webhooks import COMMANDS_OF_WEBHOOKS

COMMANDS: Commands = {
    **COMMANDS_OF_AUDIT,
    **COMMANDS_OF_NOTES,
    **COMMANDS_OF_GRANTS,
    **COMMANDS_OF_AUTHORITY,
    **COMMANDS_OF_CREDENTIALS,
    **COMMANDS_OF_DIRECTORY,
    **COMMANDS_OF_QUOTAS,
    **COMMANDS_OF_SCHEMAS,
    **COMMANDS_OF_SEALING,
    **COMMANDS_OF_WEBHOOKS,
}
"""By name, such as `ca.issue`."""

__all__ = ["COMMANDS", "Command", "Commands"]
