"""Accounts, and the credentials that a node keeps itself: API keys, users, tokens."""

from __future__ import annotations

from sealane.node.administration.accounts import COMMANDS_OF_ACCOUNTS
from sealane.node.administration.api_keys import COMMANDS_OF_API_KEYS
from sealane.node.administration.table import Commands
from sealane.node.administration.users import COMMANDS_OF_USERS

COMMANDS_OF_CREDENTIALS: Commands = {**COMMANDS_OF_API_KEYS, **COMMANDS_OF_USERS, **COMMANDS_OF_ACCOUNTS}
