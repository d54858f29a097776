"""Who may change the key directory, who may read it, and what is written down of that."""

from __future__ import annotations

from typing import Any

import pytest

import sealane
from sealane.node import NodeSettings
from sealane.node.session import Session
from sealane.security.principals import Principal
from sealane.security.settings import AuditSettings, SecuritySettings
from tests.unit.node.running_node import running_node

KEY, OTHER = sealane.PrivateKey.generate().public, sealane.PrivateKey.generate().public
BILLING = Principal("billing", "shop", frozenset({"member"}))
NOBODY = Principal("nobody", "elsewhere", frozenset())


async def give(session: Session, command: str, **arguments: Any) -> Any:
    return await session.administer(command, arguments)


async def test_everybody_keeps_their_own_keys() -> None:
    async with running_node() as running:
        billing = Session(running.node, BILLING)
        shown = await give(billing, "directory.register", public_key=KEY.pem())
        assert (shown["name"], shown["by"]) == ("billing", "billing")
        await give(billing, "directory.register", public_key=OTHER.pem(), name="billing")
        removed = await give(billing, "directory.remove", fingerprint=KEY.fingerprint)
        assert removed == {"name": "billing", "removed": [KEY.fingerprint]}
        assert await running.lane.public_keys("billing") == [OTHER]


async def test_a_key_under_the_name_of_another_is_refused() -> None:
    async with running_node() as running:
        billing = Session(running.node, BILLING)
        with pytest.raises(sealane.Forbidden):
            await give(billing, "directory.register", public_key=KEY.pem(), name="audit")
        await running.lane.register_key(KEY, "audit")
        with pytest.raises(sealane.Forbidden):
            await give(billing, "directory.remove", name="audit")
        assert await running.lane.public_keys("audit") == [KEY]


async def test_whoever_has_come_in_finds_keys_by_their_names_and_no_list_of_names() -> None:
    async with running_node() as running:
        await running.lane.register_key(KEY, "audit")
        nobody = Session(running.node, NOBODY)
        found = await give(nobody, "directory.get", names=["audit"])
        assert found["audit"][0]["fingerprint"] == KEY.fingerprint
        with pytest.raises(sealane.Forbidden):
            await give(nobody, "directory.list")


async def test_what_changed_is_in_the_audit_log_with_its_fingerprint() -> None:
    settings = NodeSettings(security=SecuritySettings(audit=AuditSettings(enabled=True)))
    async with running_node(settings) as running:
        await running.lane.register_key(KEY, "billing")
        await running.lane.administer("directory.remove", name="billing")
        found = (await running.lane.administer("audit.read"))["entries"]
        told = [(entry["event"], entry["resource"], entry["details"]) for entry in found]
        for event in ("directory.register", "directory.remove"):
            assert (event, "billing", {"fingerprint": KEY.fingerprint}) in told
