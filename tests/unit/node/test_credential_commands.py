"""`key.*`, `user.*`, `account.*`, `token.*`: who may give them, and what they do to whoever is inside."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from sealane.errors import AlreadyExists, Forbidden, InvalidArgument, InvalidName, Unauthenticated
from sealane.node.session import Session
from sealane.security.accounts import ROLE_CHARS_MAX, ROLES_MAX
from sealane.security.credentials import passwords
from sealane.security.grants.grants import Grant
from sealane.security.introductions import Introduction
from sealane.security.principals import ADMIN, Principal
from tests.unit.node.running_node import Running, running_node

PASSWORD = "correct horse"
SHOP = Principal("chief", "shop", frozenset({"keeper"}), "certificate", "certificate:1")


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MEMORY_KIB", 64)


@pytest.fixture
async def running() -> AsyncIterator[Running]:
    async with running_node() as node:
        identity = node.node.identity
        await identity.grants.add(Grant("role:keeper", "admin", "shop/*"))
        await identity.accounts.ensure("chief", domain="shop", roles={"keeper"})
        yield node


class Inside:
    """Someone who is connected."""

    def __init__(self, running: Running, principal: Principal) -> None:
        self.told: list[str] = []
        running.node.entrances.came(principal, "127.0.0.1", lambda why: self.told.append(str(why)))


async def given(running: Running, command: str, who: Principal = ADMIN, **arguments: Any) -> Any:
    return await Session(running.node, who).administer(command, arguments)


async def came_in(running: Running, **credentials: str) -> Principal:
    return await running.node.identity.authentication.authenticate(Introduction(credentials))


# --- keys -----------------------------------------------------------------------------------------------------------


async def test_a_key_is_shown_when_it_is_made_and_never_again(running: Running) -> None:
    made = await given(
        running, "key.create", account="etl.shop", allow=["publish:orders*"], expires_seconds=60, label="nightly"
    )
    assert made["key"].startswith(f"slk_{made['id']}_")
    assert made["expires_us"] == running.clock() + 60_000_000
    (listed,) = await given(running, "key.list")
    assert "key" not in listed
    assert listed["allow"] == ["publish:~/orders*"]
    assert made["key"].split("_", 2)[2] not in str(listed)
    assert (await came_in(running, key=made["key"])).domain == "shop"


async def test_revoking_a_key_shows_out_whoever_is_inside_by_it_and_nobody_else(running: Running) -> None:
    first, second = [await given(running, "key.create", account="billing") for _ in range(2)]
    inside = {made["id"]: Inside(running, await came_in(running, key=made["key"])) for made in (first, second)}
    done = await given(running, "key.revoke", id=first["id"])
    assert done["connections"] == 1
    assert inside[first["id"]].told == ["this API key was revoked"]
    assert inside[second["id"]].told == []


# --- users and tokens -----------------------------------------------------------------------------------------------


async def test_a_user_changes_their_own_password_by_the_one_until_now(running: Running) -> None:
    await given(running, "user.create", name="anna", password=PASSWORD)
    anna = await came_in(running, user="anna", password=PASSWORD)
    with pytest.raises(InvalidArgument, match="current"):
        await given(running, "user.password", anna, name="anna", password="another one")
    with pytest.raises(Unauthenticated):
        await given(running, "user.password", anna, name="anna", password="another one", current="wrong one")
    await given(running, "user.password", anna, name="anna", password="another one", current=PASSWORD)
    await came_in(running, user="anna", password="another one")


async def test_a_key_of_the_same_account_does_not_change_the_password(running: Running) -> None:
    await given(running, "user.create", name="anna", password=PASSWORD)
    made = await given(running, "key.create", account="anna")
    by_key = await came_in(running, key=made["key"])
    with pytest.raises(Forbidden):
        await given(running, "user.password", by_key, name="anna", password="another one", current=PASSWORD)


async def test_a_user_changes_nobody_elses_password(running: Running) -> None:
    for name in ("anna", "bert"):
        await given(running, "user.create", name=name, password=PASSWORD)
    anna = await came_in(running, user="anna", password=PASSWORD)
    for other in ("bert", "nobody"):
        with pytest.raises(Forbidden):
            await given(running, "user.password", anna, name=other, password="another one", current=PASSWORD)


async def test_whoever_came_in_by_a_password_gets_a_token_and_by_a_token_no_other_one(running: Running) -> None:
    await given(running, "user.create", name="anna", password=PASSWORD)
    anna = await came_in(running, user="anna", password=PASSWORD)
    issued = await given(running, "token.issue", anna)
    by_token = await came_in(running, token=issued["token"])
    assert by_token.name == "anna"
    assert issued["expires_us"] == running.clock() + 1_800_000_000
    for who in (by_token, ADMIN):
        with pytest.raises(Forbidden, match="by a password"):
            await given(running, "token.issue", who)
    await given(running, "token.rotate")
    await came_in(running, token=issued["token"])


@pytest.mark.parametrize("command", ["user.lock", "user.remove", "user.password", "account.disable", "account.roles"])
async def test_whoever_is_inside_is_shown_out_when_they_may_not_be_any_more(running: Running, command: str) -> None:
    for name in ("anna", "bert"):
        await given(running, "user.create", name=name, password=PASSWORD)
    anna = await came_in(running, user="anna", password=PASSWORD)
    token = (await given(running, "token.issue", anna))["token"]
    inside = [Inside(running, who) for who in (anna, await came_in(running, token=token))]
    bystander = Inside(running, await came_in(running, user="bert", password=PASSWORD))
    more: dict[str, dict[str, Any]] = {
        "user.password": {"password": "another one"},
        "account.roles": {"roles": []},
    }
    await given(running, command, name="anna", **more.get(command, {}))
    assert [len(each.told) for each in inside] == [1, 1]
    assert bystander.told == []


async def test_removing_a_user_tells_which_keys_still_open_the_account(running: Running) -> None:
    await given(running, "user.create", name="anna", password=PASSWORD)
    made = await given(running, "key.create", account="anna")
    assert await given(running, "user.remove", name="anna") == {"name": "anna", "keys": [made["id"]]}


# --- accounts -------------------------------------------------------------------------------------------------------


async def test_an_account_is_made_without_credentials_once(running: Running) -> None:
    made = await given(running, "account.create", name="legacy.shop", domain="shop", roles=["producer"])
    assert (made["domain"], made["roles"], made["user"], made["keys"]) == ("shop", ["producer"], False, [])
    with pytest.raises(AlreadyExists, match="account roles"):
        await given(running, "account.create", name="legacy.shop")
    member = await given(running, "account.create", name="legacy")
    assert (member["domain"], member["roles"]) == ("default", ["member"])


async def test_a_disabled_account_is_let_in_by_nothing_until_it_is_enabled(running: Running) -> None:
    made = await given(running, "key.create", account="billing")
    await given(running, "account.disable", name="billing")
    with pytest.raises(Unauthenticated):
        await came_in(running, key=made["key"])
    await given(running, "account.enable", name="billing")
    await came_in(running, key=made["key"])


async def test_an_account_is_shown_with_what_it_may_do(running: Running) -> None:
    made = await given(running, "key.create", account="billing", roles=["producer"])
    shown = await given(running, "account.show", name="billing")
    assert shown["grants"] == [{"subject": "role:producer", "action": "publish", "pattern": "~/*"}]
    assert shown["keys"] == [made["id"]]


@pytest.mark.parametrize("roles", [["a b"], ["role:admin"], ["../x"], [""], ["x" * (ROLE_CHARS_MAX + 1)]])
async def test_what_can_be_no_role_is_refused(running: Running, roles: list[str]) -> None:
    with pytest.raises(InvalidName):
        await given(running, "key.create", account="billing", roles=roles)


@pytest.mark.parametrize("domain", ["_system", "a/b", "*", "~", ".."])
async def test_a_domain_that_cannot_be_is_nobodys(running: Running, domain: str) -> None:
    with pytest.raises(InvalidName):
        await given(running, "key.create", account="billing", domain=domain)
    with pytest.raises(InvalidName):
        await given(running, "user.create", name="anna", password=PASSWORD, domain=domain)


@pytest.mark.parametrize("name", ["x._system", "../x", "a/b", "", "x" * 129, "a\nb"])
async def test_a_name_that_cannot_be_is_nobodys(running: Running, name: str) -> None:
    with pytest.raises(InvalidName):
        await given(running, "key.create", account=name)
    with pytest.raises(InvalidName):
        await given(running, "user.create", name=name, password=PASSWORD)


async def test_an_account_has_so_many_roles_and_no_more(running: Running) -> None:
    roles = [f"r{number}" for number in range(ROLES_MAX + 1)]
    await given(running, "key.create", account="billing", roles=[*roles[:-2], "x" * ROLE_CHARS_MAX])
    with pytest.raises(InvalidArgument, match="roles"):
        await given(running, "account.roles", name="billing", roles=roles)


# --- who may --------------------------------------------------------------------------------------------------------

COMMANDS: list[tuple[str, dict[str, Any]]] = [
    ("key.create", {"account": "x"}),
    ("key.list", {}),
    ("key.revoke", {"id": "a" * 12}),
    ("user.create", {"name": "x", "password": PASSWORD}),
    ("user.list", {}),
    ("user.password", {"name": "chief", "password": PASSWORD}),
    ("user.lock", {"name": "chief"}),
    ("user.unlock", {"name": "chief"}),
    ("user.remove", {"name": "chief"}),
    ("token.rotate", {}),
    ("account.list", {}),
    ("account.show", {"name": "chief"}),
    ("account.disable", {"name": "chief"}),
    ("account.enable", {"name": "chief"}),
    ("account.roles", {"name": "chief", "roles": []}),
]


@pytest.mark.parametrize(("command", "arguments"), COMMANDS)
async def test_whoever_administers_nothing_gives_none_of_these(
    running: Running, command: str, arguments: dict[str, Any]
) -> None:
    await running.node.identity.accounts.ensure("mallory", roles={"member", "manager"})
    mallory = Principal("mallory", roles=frozenset({"member", "manager"}), kind="certificate", credential="c")
    with pytest.raises(Forbidden):
        await given(running, command, mallory, **arguments)


async def test_whoever_administers_a_domain_makes_keys_and_users_in_it(running: Running) -> None:
    await given(running, "key.create", SHOP, account="etl.shop", roles=["producer"])
    await given(running, "user.create", SHOP, name="anna", domain="shop", password=PASSWORD)
    await given(running, "key.create", account="elsewhere")
    assert [each["account"] for each in await given(running, "key.list", SHOP)] == ["etl.shop"]
    assert [each["name"] for each in await given(running, "user.list", SHOP)] == ["anna"]
    assert "elsewhere" not in [each["name"] for each in await given(running, "account.list", SHOP)]


async def test_whoever_administers_a_domain_has_no_say_in_another_one(running: Running) -> None:
    made = await given(running, "key.create", account="billing")
    for command, arguments in [
        ("key.create", {"account": "billing"}),
        ("key.create", {"account": "new", "domain": "bank"}),
        ("key.revoke", {"id": made["id"]}),
        ("account.disable", {"name": "billing"}),
    ]:
        with pytest.raises(Forbidden):
            await given(running, command, SHOP, **arguments)


@pytest.mark.parametrize("roles", [["admin"], ["member", "admin"], ["unheard-of"], ["auditor"]])
async def test_whoever_administers_a_domain_makes_nobody_more_than_they_are(running: Running, roles: list[str]) -> None:
    await running.node.identity.grants.add(Grant("role:auditor", "consume", "_system/_audit"))
    for command, arguments in [
        ("key.create", {"account": "etl.shop", "roles": roles}),
        ("user.create", {"name": "anna", "domain": "shop", "password": PASSWORD, "roles": roles}),
        ("account.roles", {"name": "chief", "roles": roles}),
    ]:
        with pytest.raises(Forbidden):
            await given(running, command, SHOP, **arguments)


async def test_whoever_administers_a_domain_gets_no_key_of_an_account_that_is_more_than_they_are(
    running: Running,
) -> None:
    identity = running.node.identity
    await identity.accounts.ensure("root.shop", roles={"admin"})
    await identity.accounts.ensure("teller.shop")
    await identity.grants.add(Grant("teller.shop", "publish", "bank/*"))
    await identity.users.create("root.shop", PASSWORD)
    for command, arguments in [
        ("key.create", {"account": "root.shop"}),
        ("key.create", {"account": "teller.shop"}),
        ("user.password", {"name": "root.shop", "password": "another one"}),
        ("account.disable", {"name": "root.shop"}),
    ]:
        with pytest.raises(Forbidden):
            await given(running, command, SHOP, **arguments)
