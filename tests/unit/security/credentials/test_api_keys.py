"""API keys: made once, shown once, and refused for every reason there is."""

from __future__ import annotations

import hmac
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from sealane.client.remote.credentials import ApiKey
from sealane.engine.local import DiskFiles, LocalEngine, StorageSettings
from sealane.errors import AlreadyExists, InvalidArgument, KeyNotFound, Unavailable
from sealane.node.identity import Identity
from sealane.security.authenticators import keys as by_key
from sealane.security.authenticators.keys import CLOCK_SKEW_SECONDS_MAX, LOGINS_REMEMBERED_MAX
from sealane.security.credentials.api_keys import ALLOWS_MAX, LABEL_CHARS_MAX, read_allowed
from sealane.security.credentials.key_text import ApiKeyText, read_api_key
from tests.unit.security.identities import SECOND_US, Clock, an_identity, entered, refusal


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def identity(clock: Clock) -> Identity:
    return await an_identity(clock)


def shown(key: str, clock: Clock) -> dict[str, Any]:
    credentials = ApiKey(key, clock, os.urandom).show().credentials
    assert credentials is not None
    return credentials


def with_secret(key: str, secret: bytes) -> str:
    """The same id with another secret."""
    return ApiKeyText(read_api_key(key).id, secret).written()


# --- the text -------------------------------------------------------------------------------------------------------


async def test_a_key_is_its_prefix_an_id_and_a_secret_of_256_bits(identity: Identity) -> None:
    made, text = await identity.api_keys.create("billing")
    assert text.startswith(f"slk_{made.id}_")
    assert len(made.id) == 12
    assert len(read_api_key(text).secret) == 32
    assert read_api_key(text).written() == text


@pytest.mark.parametrize("text", ["", "slk_", "slk_abc_def", "key", "slk_ABCDEFGHIJKL_" + "a" * 43, "x" * 100_000])
def test_what_is_no_key_is_refused_and_not_repeated(text: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        read_api_key(text)
    assert not text or len(text) < 8 or text not in str(caught.value)


# --- coming in ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("whole", [True, False])
async def test_whoever_has_a_key_is_its_account(identity: Identity, clock: Clock, whole: bool) -> None:
    made, text = await identity.api_keys.create("billing", roles={"producer"}, allows=[("publish", "~/orders*")])
    principal = await entered(identity, {"key": text} if whole else shown(text, clock))
    assert (principal.name, principal.kind) == ("billing", "key")
    assert principal.roles == {"producer"}
    assert principal.credential == f"key:{made.id}"
    assert principal.narrowed == (("publish", "~/orders*"),)


@pytest.mark.parametrize("whole", [True, False])
async def test_an_unknown_key_and_a_wrong_secret_get_the_same_words(
    identity: Identity, clock: Clock, whole: bool
) -> None:
    _, text = await identity.api_keys.create("billing")
    wrong = with_secret(text, bytes(32))
    unknown = f"slk_{'a' * 12}_{text.split('_', 2)[2]}"
    words = {await refusal(identity, {"key": key} if whole else shown(key, clock)) for key in (wrong, unknown)}
    assert words == {"this API key is not valid here"}


@pytest.mark.parametrize("whole", [True, False])
async def test_secrets_are_compared_in_constant_time_whether_the_key_is_known_or_not(
    identity: Identity, clock: Clock, whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    compare = hmac.compare_digest

    def counting(one: bytes, other: bytes) -> bool:
        calls.append(1)
        return compare(one, other)

    _, text = await identity.api_keys.create("billing")
    tried = [text, with_secret(text, bytes(32)), f"slk_{'a' * 12}_{text.split('_', 2)[2]}"]
    monkeypatch.setattr(hmac, "compare_digest", counting)
    for key in tried:
        credentials = {"key": key} if whole else shown(key, clock)
        if key is text:
            await entered(identity, credentials)
        else:
            await refusal(identity, credentials)
    assert len(calls) == len(tried)


async def test_a_proof_is_good_once(identity: Identity, clock: Clock) -> None:
    _, text = await identity.api_keys.create("billing")
    credentials = shown(text, clock)
    await entered(identity, credentials)
    assert "used before" in await refusal(identity, credentials)
    clock.pass_(CLOCK_SKEW_SECONDS_MAX)
    assert "used before" in await refusal(identity, credentials)
    clock.pass_(1)
    assert "clock" in await refusal(identity, credentials)


async def test_a_proof_of_before_the_node_began_is_asked_for_again(clock: Clock) -> None:
    first = await an_identity(clock)
    _, text = await first.api_keys.create("billing")
    before = shown(text, clock)
    clock.pass_(1)
    again = await an_identity(clock, before=first)
    with pytest.raises(Unavailable, match="try again"):
        await entered(again, before)
    await entered(again, shown(text, clock))


@pytest.mark.parametrize(("seconds", "word"), [(301, "behind"), (-301, "ahead of")])
async def test_a_clock_that_is_too_far_off_is_told_by_how_much(
    identity: Identity, clock: Clock, seconds: int, word: str
) -> None:
    clock.pass_(1_000)
    _, text = await identity.api_keys.create("billing")
    credentials = shown(text, clock)
    clock.pass_(seconds)
    assert f"301 s {word}" in await refusal(identity, credentials)


@pytest.mark.parametrize("seconds", [300, -300])
async def test_a_clock_just_within_the_limit_is_no_matter(identity: Identity, clock: Clock, seconds: int) -> None:
    clock.pass_(1_000)
    _, text = await identity.api_keys.create("billing")
    credentials = shown(text, clock)
    clock.pass_(seconds)
    await entered(identity, credentials)


async def test_more_logins_than_can_be_remembered_have_to_wait(
    identity: Identity, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LOGINS_REMEMBERED_MAX == 100_000
    monkeypatch.setattr(by_key, "LOGINS_REMEMBERED_MAX", 3)
    _, text = await identity.api_keys.create("billing")
    for _ in range(3):
        await entered(identity, shown(text, clock))
    with pytest.raises(Unavailable, match="try later"):
        await entered(identity, shown(text, clock))
    clock.pass_(CLOCK_SKEW_SECONDS_MAX + 1)
    await entered(identity, shown(text, clock))


GOOD = {"id": "a" * 12, "time_us": 1, "nonce": bytes(16), "proof": bytes(32)}


@pytest.mark.parametrize(
    "value",
    [
        5,
        None,
        [],
        {},
        {**GOOD, "id": 7},
        {**GOOD, "time_us": -1},
        {**GOOD, "time_us": 1 << 64},
        {**GOOD, "nonce": b"short"},
        {**GOOD, "proof": b""},
        {**GOOD, "more": 1},
    ],
)
async def test_a_key_in_another_shape_is_refused_with_the_right_one(identity: Identity, value: Any) -> None:
    assert '{"key": "slk_…"}' in await refusal(identity, {"key": value})


# --- its end --------------------------------------------------------------------------------------------------------


async def test_an_expired_key_is_refused_from_its_last_moment_on(identity: Identity, clock: Clock) -> None:
    _, text = await identity.api_keys.create("billing", expires_us=clock() + 10 * SECOND_US)
    clock.pass_(9)
    assert (await entered(identity, shown(text, clock))).expires_us == clock() + SECOND_US
    clock.pass_(1)
    assert "has expired" in await refusal(identity, shown(text, clock))


async def test_a_revoked_key_is_refused_and_its_secret_is_forgotten(identity: Identity, clock: Clock) -> None:
    made, text = await identity.api_keys.create("billing")
    revoked = await identity.api_keys.revoke(made.id)
    assert revoked.secret == b""
    assert revoked.revoked_us == clock()
    assert "not valid here" in await refusal(identity, shown(text, clock))
    assert "not valid here" in await refusal(identity, {"key": with_secret(text, bytes(32))})


async def test_a_key_of_a_disabled_account_is_refused(identity: Identity, clock: Clock) -> None:
    _, text = await identity.api_keys.create("billing")
    await identity.accounts.change("billing", disabled=True)
    assert "not valid here" in await refusal(identity, shown(text, clock))


async def test_a_key_that_is_not_there_cannot_be_revoked(identity: Identity) -> None:
    with pytest.raises(KeyNotFound):
        await identity.api_keys.revoke("a" * 12)


# --- what it may be -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("publish:orders*", ("publish", "~/orders*")),
        ("consume:shop/orders", ("consume", "shop/orders")),
        ("admin:*/*", ("admin", "*/*")),
    ],
)
def test_a_permission_is_an_action_and_a_pattern(text: str, allowed: tuple[str, str]) -> None:
    assert read_allowed(text) == allowed


@pytest.mark.parametrize(
    "text", ["", "orders", "write:orders", "publish", "publish:", "publish:a/b/c", "publish:(a|b)+"]
)
def test_what_is_no_permission_is_refused(text: str) -> None:
    with pytest.raises(InvalidArgument):
        read_allowed(text)


async def test_labels_and_permissions_have_their_limits(identity: Identity, clock: Clock) -> None:
    one = ("publish", "~/a")
    await identity.api_keys.create("a", label="x" * LABEL_CHARS_MAX, allows=[one] * ALLOWS_MAX)  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="label"):
        await identity.api_keys.create("a", label="x" * (LABEL_CHARS_MAX + 1))
    with pytest.raises(InvalidArgument, match="label"):
        await identity.api_keys.create("a", label="two\nlines")
    with pytest.raises(InvalidArgument, match="allow"):
        await identity.api_keys.create("a", allows=[one] * (ALLOWS_MAX + 1))  # type: ignore[list-item]
    with pytest.raises(InvalidArgument, match="expires"):
        await identity.api_keys.create("a", expires_us=clock())
    with pytest.raises(AlreadyExists):
        await identity.api_keys.create("a", domain="elsewhere")


# --- where it is kept -----------------------------------------------------------------------------------------------


def all_but_the_master_key(directory: Path) -> bytes:
    files = (path for path in directory.rglob("*") if path.is_file() and path.name != "master.key")
    return b"".join(path.read_bytes() for path in files)


async def test_a_stolen_database_alone_holds_no_secret_and_survives_a_restart(tmp_path: Path, clock: Clock) -> None:
    async def opened() -> LocalEngine:
        return await LocalEngine.start(DiskFiles(tmp_path), settings=StorageSettings(), clock=clock, entropy=os.urandom)

    engine = await opened()
    made, text = await (await an_identity(clock, engine=engine)).api_keys.create("billing", label="canary-label")
    await engine.close()

    secret = read_api_key(text).secret
    with sqlite3.connect(tmp_path / "meta.db") as database:
        dump = "\n".join(database.iterdump())
    database.close()
    stored = all_but_the_master_key(tmp_path)
    assert f"key/{made.id}" in dump, "this is where it would be"
    for needle in (secret, secret.hex().encode(), text.split("_", 2)[2].encode(), b"canary-label"):
        assert needle not in stored
        assert needle.hex().upper() not in dump.upper()

    engine = await opened()
    assert (await entered(await an_identity(clock, engine=engine), shown(text, clock))).name == "billing"
    await engine.close()


async def test_a_secret_is_in_no_repr(identity: Identity, clock: Clock) -> None:
    made, text = await identity.api_keys.create("billing")
    credentials = ApiKey(text, clock, os.urandom)
    secret = text.split("_", 2)[2]
    for shown_ in (made, read_api_key(text), credentials, credentials.show(), identity.api_keys):
        assert secret not in repr(shown_)
        assert repr(made.secret) not in repr(shown_)
