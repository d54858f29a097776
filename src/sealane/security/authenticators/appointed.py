"""Whoever comes by a door whose protocol has no word for who comes: they are whom the door stands for."""

from __future__ import annotations

from sealane.errors import Unauthenticated
from sealane.security.accounts import Accounts
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal


class AppointedAuthenticator:
    """An account is named by the door's settings, so that what may be done by it is said by grants, as everywhere."""

    name = "door"

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    async def authenticate(self, shown: Introduction) -> Principal | None:
        if not shown.appointed:
            return None
        account = self._accounts.find(shown.appointed)
        if account is None or account.disabled:
            raise Unauthenticated(
                f"the account that doors.{shown.door}.principal names does not exist or is disabled: the node's "
                "administrator can make it with `sealane account create`"
            )
        return self._accounts.principal(shown.appointed, "door", "", client_id=f"door:{shown.door}")
