"""Grants: one place that decides, and changes that hold at once."""

from __future__ import annotations

import pytest

from sealane.engine.memory import MemoryEngine
from sealane.errors import Forbidden, GrantNotFound, InvalidArgument
from sealane.security.grants.grants import BUILT_IN, NODE, SUBJECT_CHARS_MAX, VERDICTS_MAX, Grant, Grants
from sealane.security.principals import ADMIN, Principal
from tests.unit.security.identities import vault_of


@pytest.fixture
def grants() -> Grants:
    return Grants(vault_of(MemoryEngine(lambda: 0)))


ANNA = Principal("anna", "shop")


async def test_whoever_has_no_grant_may_do_nothing(grants: Grants) -> None:
    for action in ("publish", "consume", "manage", "admin"):
        with pytest.raises(Forbidden, match="'anna' may not"):
            grants.authorise(ANNA, action, "shop/orders")


async def test_a_grant_holds_at_once_and_until_it_is_removed(grants: Grants) -> None:
    assert not grants.allows(ANNA, "publish", "shop/orders")
    grant = Grant("anna", "publish", "shop/orders")
    assert await grants.add(grant)
    assert not await grants.add(grant)
    assert grants.allows(ANNA, "publish", "shop/orders")
    await grants.remove(grant)
    assert not grants.allows(ANNA, "publish", "shop/orders")


async def test_grants_are_there_after_a_restart() -> None:
    engine = MemoryEngine(lambda: 0)
    grant = Grant("external:auth0|42", "consume", "shop/*")
    await Grants(vault_of(engine)).add(grant)
    again = Grants(vault_of(engine))
    await again.load()
    assert grant in again.all()
    await again.remove(grant)
    await again.add(grant)


async def test_grants_of_like_names_are_different_records(grants: Grants) -> None:
    written = [Grant("a", "publish", "b/*"), Grant("a|publish", "publish", "b/*"), Grant("a", "publish", "b/x")]
    for grant in written:
        await grants.add(grant)
    await grants.remove(written[0])
    assert set(written[1:]) <= set(grants.all())
    assert len({grant.place for grant in written}) == 3


async def test_whoever_listens_hears_of_each_change(grants: Grants) -> None:
    heard: list[int] = []
    grants.changed.append(lambda: heard.append(len(grants.all())))
    await grants.add(Grant("anna", "publish", "shop/orders"))
    await grants.remove(Grant("anna", "publish", "shop/orders"))
    assert heard == [len(BUILT_IN) + 1, len(BUILT_IN)]


async def test_a_grant_that_is_not_there_cannot_be_removed(grants: Grants) -> None:
    with pytest.raises(GrantNotFound, match="anna publish shop/orders"):
        await grants.remove(Grant("anna", "publish", "shop/orders"))


async def test_what_a_built_in_role_is_cannot_be_removed(grants: Grants) -> None:
    with pytest.raises(InvalidArgument, match="is what the role is"):
        await grants.remove(BUILT_IN[0])


@pytest.mark.parametrize("subject", ["", "role:", "an na", "anna\n", ".*", "x" * (SUBJECT_CHARS_MAX + 1)])
async def test_what_cannot_be_a_subject_is_refused(grants: Grants, subject: str) -> None:
    with pytest.raises(InvalidArgument, match="subject"):
        await grants.add(Grant(subject, "publish", "shop/*"))


async def test_a_subject_may_be_as_long_as_the_limit(grants: Grants) -> None:
    assert await grants.add(Grant("x" * SUBJECT_CHARS_MAX, "publish", "shop/*"))


async def test_a_role_comes_to_be_by_being_granted_something(grants: Grants) -> None:
    teller = Principal("bob", "bank", frozenset({"tellers"}))
    assert not grants.allows(teller, "publish", "shop/till")
    await grants.add(Grant("role:tellers", "publish", "shop/till"))
    assert grants.allows(teller, "publish", "shop/till")
    assert not grants.allows(Principal("role:tellers"), "consume", "shop/till")


async def test_a_name_that_looks_like_an_expression_is_granted_nothing_else(grants: Grants) -> None:
    await grants.add(Grant("a.c", "publish", "shop/o.s"))
    assert grants.allows(Principal("a.c"), "publish", "shop/o.s")
    assert not grants.allows(Principal("abc"), "publish", "shop/o.s")
    assert not grants.allows(Principal("a.c"), "publish", "shop/oxs")


async def test_consuming_by_a_star_does_not_take_in_the_systems_domain(grants: Grants) -> None:
    await grants.add(Grant("anna", "consume", "*/*"))
    assert grants.allows(ANNA, "consume", "bank/orders")
    assert not grants.allows(ANNA, "consume", "_system/audit")
    await grants.add(Grant("anna", "consume", "_system/audit"))
    assert grants.allows(ANNA, "consume", "_system/audit")
    assert not grants.allows(ANNA, "manage", "_system/audit")


async def test_managing_by_a_star_does_not_take_in_the_systems_topics(grants: Grants) -> None:
    await grants.add(Grant("anna", "manage", "shop/*"))
    assert grants.allows(ANNA, "manage", "shop/orders")
    assert not grants.allows(ANNA, "manage", "shop/_transactions")


async def test_the_administrator_may_do_everything(grants: Grants) -> None:
    for resource in (NODE, "shop/orders", "_system/audit"):
        assert grants.allows(ADMIN, "manage", resource)


async def test_a_narrowed_credential_may_do_no_more_than_it_says(grants: Grants) -> None:
    await grants.add(Grant("anna", "admin", "shop/*"))
    narrowed = Principal("anna", "shop", narrowed=(("publish", "~/orders*"),))
    assert grants.allows(narrowed, "publish", "shop/orders.eu")
    assert not grants.allows(narrowed, "publish", "shop/carts")
    assert not grants.allows(narrowed, "manage", "shop/orders.eu")
    assert not grants.may_give(narrowed, Grant("bob", "publish", "shop/orders"))


async def test_a_narrowed_credential_is_granted_nothing_by_being_narrowed(grants: Grants) -> None:
    assert not grants.allows(Principal("bob", "shop", narrowed=(("admin", "*/*"),)), "publish", "shop/orders")


@pytest.mark.parametrize(
    "beyond",
    [
        Grant("anna", "publish", "bank/orders"),
        Grant("anna", "admin", "*/*"),
        Grant("anna", "admin", "_system/node"),
        Grant("anna", "publish", "s*/orders"),
        Grant("role:member", "publish", "~/*"),
        Grant("role:member", "admin", "~/*"),
        Grant("role:admin", "publish", "*/orders"),
    ],
)
async def test_a_domains_administrator_grants_nothing_beyond_the_domain(grants: Grants, beyond: Grant) -> None:
    await grants.add(Grant("anna", "admin", "shop/*"))
    assert not grants.may_give(ANNA, beyond)
    assert grants.may_give(ADMIN, beyond)


async def test_a_domains_administrator_grants_what_lies_within_it(grants: Grants) -> None:
    await grants.add(Grant("anna", "admin", "shop/*"))
    for grant in (Grant("bob", "publish", "shop/o*"), Grant("role:clerks", "admin", "shop/*")):
        assert grants.may_give(ANNA, grant)
    assert not grants.allows(ANNA, "admin", NODE)


async def test_whoever_manages_a_topic_does_not_grant_it(grants: Grants) -> None:
    await grants.add(Grant("anna", "manage", "shop/*"))
    assert not grants.may_give(ANNA, Grant("bob", "publish", "shop/orders"))


async def test_verdicts_are_forgotten_beyond_their_limit_and_found_again(grants: Grants) -> None:
    for number in range(VERDICTS_MAX + 1):
        grants.allows(ANNA, "publish", f"shop/{number}")
    assert len(grants._verdicts) <= VERDICTS_MAX
    await grants.add(Grant("anna", "publish", "shop/7"))
    assert grants.allows(ANNA, "publish", "shop/7")
