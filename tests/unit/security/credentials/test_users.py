"""Users: Argon2id, the same words for every refusal, and a lock-out that survives a restart."""

from __future__ import annotations

import asyncio
import unicodedata

import pytest

from sealane.errors import AlreadyExists, InvalidArgument, UserNotFound
from sealane.node.identity import Identity
from sealane.security.credentials import passwords
from sealane.security.credentials.passwords import PASSWORD_CHARS_MAX, PASSWORD_CHARS_MIN, Passwords, check_password
from sealane.security.settings import SecuritySettings, UserSettings
from tests.unit.security.identities import Clock, an_identity, entered, refusal

RIGHT, WRONG = "correct horse", "battery staple"
SETTINGS = SecuritySettings(users=UserSettings(failures_max=2, lockout_seconds=60))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(autouse=True)
def cheap_hashes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is tested here does not depend on how long a hash takes; one test looks at what it really is."""
    if "really" not in request.node.name:
        monkeypatch.setattr(passwords, "MEMORY_KIB", 64)
        monkeypatch.setattr(passwords, "PASSES", 1)


@pytest.fixture
async def identity(clock: Clock) -> Identity:
    made = await an_identity(clock, SETTINGS)
    await made.users.create("anna", RIGHT, roles={"manager"})
    return made


def as_user(name: str, password: str) -> dict[str, str]:
    return {"user": name, "password": password}


async def test_the_right_password_lets_a_user_in(identity: Identity) -> None:
    principal = await entered(identity, as_user("anna", RIGHT))
    assert (principal.name, principal.kind, principal.credential) == ("anna", "user", "user:anna")
    assert principal.roles == {"manager"}


async def test_an_unknown_user_a_wrong_password_and_a_locked_user_get_the_same_words(identity: Identity) -> None:
    await identity.users.create("bert", RIGHT)
    await identity.users.lock("bert")
    words = {
        await refusal(identity, as_user(*tried))
        for tried in [("anna", WRONG), ("nobody", RIGHT), ("bert", RIGHT), ("x" * 1_000, RIGHT), ("anna", "x" * 10_000)]
    }
    assert len(words) == 1


async def test_an_unknown_or_locked_user_costs_as_much_as_a_wrong_password(
    identity: Identity, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked: list[str | None] = []
    real = Passwords.matches

    async def counting(self: Passwords, password: str, kept: str | None) -> bool:
        checked.append(kept)
        return await real(self, password, kept)

    monkeypatch.setattr(Passwords, "matches", counting)
    await identity.users.create("bert", RIGHT)
    await identity.users.lock("bert")
    for name in ("nobody", "bert"):
        await refusal(identity, as_user(name, RIGHT))
    assert checked == [None, None], "each was hashed, against nobody's hash"


async def test_a_password_is_really_kept_as_argon2id_of_64_mib(clock: Clock) -> None:
    identity = await an_identity(clock)
    user = await identity.users.create("anna", RIGHT)
    assert user.password.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert RIGHT not in repr(user)
    assert user.password not in repr(user)
    nobodys = Passwords(lambda count: bytes(count))._nobodys
    assert nobodys.split("$")[:4] == user.password.split("$")[:4], "an unknown user takes as long"
    assert await identity.users.check("anna", RIGHT)
    assert not await identity.users.check("nobody", RIGHT)


async def test_accents_may_be_composed_either_way(identity: Identity) -> None:
    await identity.users.create("zoe", unicodedata.normalize("NFD", "crème brûlée"))
    await entered(identity, as_user("zoe", unicodedata.normalize("NFC", "crème brûlée")))


# --- lock-out -------------------------------------------------------------------------------------------------------


async def test_after_failures_in_a_row_the_right_password_is_refused_too_for_a_while(
    identity: Identity, clock: Clock
) -> None:
    for _ in range(2):
        await refusal(identity, as_user("anna", WRONG))
    await refusal(identity, as_user("anna", RIGHT))
    clock.pass_(59.9)
    await refusal(identity, as_user("anna", RIGHT))
    clock.pass_(0.1)
    await entered(identity, as_user("anna", RIGHT))


async def test_one_failure_less_locks_nobody_out_and_success_begins_the_count_anew(identity: Identity) -> None:
    for _ in range(3):
        await refusal(identity, as_user("anna", WRONG))
        await entered(identity, as_user("anna", RIGHT))
    assert identity.users.get("anna").failures == 0


async def test_a_lock_out_survives_a_restart(identity: Identity, clock: Clock) -> None:
    await refusal(identity, as_user("anna", WRONG))
    again = await an_identity(clock, SETTINGS, before=identity)
    await refusal(again, as_user("anna", WRONG))
    last = await an_identity(clock, SETTINGS, before=identity)
    await refusal(last, as_user("anna", RIGHT))
    clock.pass_(60)
    await entered(last, as_user("anna", RIGHT))


async def test_guesses_at_the_same_time_are_counted_one_by_one(identity: Identity) -> None:
    await asyncio.gather(*(refusal(identity, as_user("anna", WRONG)) for _ in range(10)))
    await refusal(identity, as_user("anna", RIGHT))


async def test_an_administrator_can_end_a_lock_out(identity: Identity) -> None:
    for _ in range(2):
        await refusal(identity, as_user("anna", WRONG))
    await identity.users.unlock("anna")
    await entered(identity, as_user("anna", RIGHT))


async def test_what_an_administrator_locked_stays_so_until_it_is_unlocked(identity: Identity, clock: Clock) -> None:
    await identity.users.lock("anna")
    clock.pass_(100_000)
    await refusal(identity, as_user("anna", RIGHT))
    await identity.users.unlock("anna")
    await entered(identity, as_user("anna", RIGHT))


# --- changing -------------------------------------------------------------------------------------------------------


async def test_a_new_password_replaces_the_old_one(identity: Identity) -> None:
    await identity.users.change_password("anna", "another one")
    await refusal(identity, as_user("anna", RIGHT))
    await entered(identity, as_user("anna", "another one"))


async def test_a_removed_user_is_refused_and_its_account_stays(identity: Identity) -> None:
    await identity.users.remove("anna")
    await refusal(identity, as_user("anna", RIGHT))
    assert identity.accounts.get("anna").name == "anna"
    with pytest.raises(UserNotFound):
        await identity.users.remove("anna")


async def test_a_user_is_made_once(identity: Identity) -> None:
    with pytest.raises(AlreadyExists):
        await identity.users.create("anna", RIGHT)


@pytest.mark.parametrize("length", [0, PASSWORD_CHARS_MIN - 1, PASSWORD_CHARS_MAX + 1])
def test_a_password_that_is_too_short_or_too_long_is_refused_and_not_repeated(length: int) -> None:
    with pytest.raises(InvalidArgument) as caught:
        check_password("ß" * length)
    assert "ß" not in str(caught.value)


@pytest.mark.parametrize("length", [PASSWORD_CHARS_MIN, PASSWORD_CHARS_MAX])
def test_a_password_at_the_edge_is_taken(length: int) -> None:
    check_password("ß" * length)


@pytest.mark.parametrize(
    "credentials", [{"user": "anna"}, {"user": 5, "password": RIGHT}, {"user": "anna", "password": 5}]
)
async def test_a_user_in_another_shape_is_refused_with_the_right_one(
    identity: Identity, credentials: dict[str, object]
) -> None:
    assert '{"user": "…", "password": "…"}' in await refusal(identity, credentials)


async def test_more_logins_than_can_wait_are_asked_to_come_again(monkeypatch: pytest.MonkeyPatch) -> None:
    from sealane.errors import Unavailable

    monkeypatch.setattr(passwords, "HASHINGS_WAITING_MAX", 3)
    checking = Passwords(lambda count: bytes(count))
    outcomes = await asyncio.gather(*(checking.matches(WRONG, None) for _ in range(10)), return_exceptions=True)
    assert any(isinstance(outcome, Unavailable) for outcome in outcomes)
    assert False in outcomes
    assert await checking.matches(WRONG, None) is False, "and later there is room again"
