"""Tokens of the node's own users: what is refused, and that nothing a token says of itself is believed."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest

from sealane.node.identity import Identity
from sealane.security.credentials import passwords
from sealane.security.credentials.bearer_tokens import TOKEN_CHARS_MAX
from sealane.security.settings import SecuritySettings, UserSettings
from tests.unit.security.identities import SECOND_US, Clock, an_identity, entered, refusal

SETTINGS = SecuritySettings(users=UserSettings(token_seconds=100))


@pytest.fixture(autouse=True)
def cheap_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passwords, "MEMORY_KIB", 64)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def identity(clock: Clock) -> Identity:
    made = await an_identity(clock, SETTINGS)
    await made.users.create("anna", "correct horse", roles={"manager"})
    return made


async def a_token(identity: Identity) -> str:
    return (await identity.tokens.issue("anna"))[0]


def parts(token: str) -> tuple[dict[str, Any], dict[str, Any], str]:
    header, payload, signature = token.split(".")
    return json.loads(_decoded(header)), json.loads(_decoded(payload)), signature


def joined(header: dict[str, Any], payload: dict[str, Any], signature: str) -> str:
    return f"{_encoded(header)}.{_encoded(payload)}.{signature}"


def _decoded(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def _encoded(value: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


async def signed(identity: Identity, *, without: str = "", **changes: Any) -> str:
    """A token that the node's own key has signed, which says something else."""
    own_header, claims, _ = parts(await a_token(identity))
    claims = {name: value for name, value in {**claims, **changes}.items() if name != without}
    key = identity.tokens._keys.get(own_header["kid"])
    assert key is not None
    return jwt.encode(claims, key.secret, algorithm="HS256", headers=own_header)


async def test_a_token_lets_its_user_in_until_it_ends(identity: Identity, clock: Clock) -> None:
    token, expires_us = await identity.tokens.issue("anna")
    principal = await entered(identity, {"token": token})
    assert (principal.name, principal.kind) == ("anna", "token")
    assert principal.roles == {"manager"}
    assert principal.expires_us == expires_us == clock() + 100 * SECOND_US
    assert principal.credential.startswith("token:")
    clock.pass_(99.9)
    await entered(identity, {"token": token})
    clock.pass_(0.1)
    assert "expired" in await refusal(identity, {"token": token})


async def test_a_token_of_an_older_key_is_taken_until_it_ends(identity: Identity, clock: Clock) -> None:
    token = await a_token(identity)
    await identity.tokens.rotate()
    newer = await a_token(identity)
    assert parts(token)[0]["kid"] != parts(newer)[0]["kid"]
    for each in (token, newer):
        await entered(identity, {"token": each})
    clock.pass_(100)
    assert "not valid here" in await refusal(identity, {"token": token})
    await identity.tokens.rotate()
    assert len(identity.tokens._keys) == 2, "the first one is forgotten"


async def test_tokens_survive_a_restart(identity: Identity, clock: Clock) -> None:
    token = await a_token(identity)
    assert (await entered(await an_identity(clock, SETTINGS, before=identity), {"token": token})).name == "anna"


# --- what is refused ------------------------------------------------------------------------------------------------


async def test_a_token_without_a_signature_is_refused(identity: Identity) -> None:
    header, claims, _ = parts(await a_token(identity))
    for algorithm in ("none", "None", "NONE"):
        assert "not valid here" in await refusal(identity, {"token": joined({**header, "alg": algorithm}, claims, "")})


async def test_a_tampered_payload_is_refused(identity: Identity) -> None:
    await identity.users.create("root", "correct horse", roles={"admin"})
    header, claims, signature = parts(await a_token(identity))
    assert "not valid here" in await refusal(identity, {"token": joined(header, {**claims, "sub": "root"}, signature)})


async def test_a_tampered_signature_is_refused(identity: Identity) -> None:
    header, claims, signature = parts(await a_token(identity))
    changed = ("A" if signature[0] != "A" else "B") + signature[1:]
    assert "not valid here" in await refusal(identity, {"token": joined(header, claims, changed)})


@pytest.mark.parametrize("algorithm", ["HS512", "RS256", "ES256", "EdDSA"])
async def test_a_token_of_our_own_by_another_algorithm_is_refused(identity: Identity, algorithm: str) -> None:
    header, claims, signature = parts(await a_token(identity))
    token = joined({**header, "alg": algorithm}, claims, signature)
    assert "not valid here" in await refusal(identity, {"token": token})


async def test_a_token_of_our_name_by_a_foreign_key_is_refused(identity: Identity) -> None:
    header, claims, _ = parts(await a_token(identity))
    for headers in (header, {**header, "kid": "unknown"}, {"alg": "HS256"}):
        token = jwt.encode(claims, b"k" * 32, algorithm="HS256", headers=headers)
        assert "not valid here" in await refusal(identity, {"token": token})


@pytest.mark.parametrize("field", ["jku", "jwk", "x5u", "x5c"])
async def test_a_key_that_a_token_brings_with_it_is_not_used(identity: Identity, field: str) -> None:
    header, claims, _ = parts(await a_token(identity))
    own = {"kty": "oct", "k": base64.urlsafe_b64encode(b"k" * 32).decode(), "kid": header["kid"]}
    brought = {"jku": "https://127.0.0.1:1/", "x5u": "https://127.0.0.1:1/", "jwk": own, "x5c": ["AAAA"]}[field]
    token = jwt.encode(claims, b"k" * 32, algorithm="HS256", headers={**header, field: brought})
    assert "not valid here" in await refusal(identity, {"token": token})


async def test_a_wrong_issuer_is_refused(identity: Identity) -> None:
    assert "issuer is wrong" in await refusal(identity, {"token": await signed(identity, iss="elsewhere")})
    assert "issuer is wrong" in await refusal(identity, {"token": await signed(identity, without="iss")})


async def test_a_wrong_audience_is_refused(identity: Identity) -> None:
    assert "audience" in await refusal(identity, {"token": await signed(identity, aud="elsewhere")})
    assert "aud" in await refusal(identity, {"token": await signed(identity, without="aud")})


async def test_a_token_that_is_not_valid_yet_is_refused(identity: Identity, clock: Clock) -> None:
    later = clock() / SECOND_US + 1
    for token in (await signed(identity, nbf=later), await signed(identity, iat=later)):
        assert "not valid yet" in await refusal(identity, {"token": token})


@pytest.mark.parametrize("claim", ["exp", "sub"])
async def test_a_token_without_an_end_or_a_subject_is_refused(identity: Identity, claim: str) -> None:
    assert f"has no '{claim}'" in await refusal(identity, {"token": await signed(identity, without=claim)})


@pytest.mark.parametrize("value", ["soon", True, None, -1, 1e300, [1]])
async def test_an_end_that_is_no_moment_is_refused(identity: Identity, value: Any) -> None:
    await refusal(identity, {"token": await signed(identity, exp=value)})


@pytest.mark.parametrize(
    "token", ["", "x", "a.b.c", "..", "é.é.é", "A" * TOKEN_CHARS_MAX, "A" * (TOKEN_CHARS_MAX + 1), 5, None]
)
async def test_what_is_no_token_is_refused_and_not_repeated(identity: Identity, token: Any) -> None:
    assert "AAAA" not in await refusal(identity, {"token": token})


async def test_a_token_is_over_with_its_user(identity: Identity, clock: Clock) -> None:
    token = {"token": await a_token(identity)}
    await identity.users.lock("anna")
    assert "not valid here" in await refusal(identity, token)
    await identity.users.unlock("anna")
    await entered(identity, token)
    await identity.accounts.change("anna", disabled=True)
    assert "not valid here" in await refusal(identity, token)
    await identity.accounts.change("anna", disabled=False)
    clock.pass_(1)
    await identity.users.change_password("anna", "another one")
    assert "not valid here" in await refusal(identity, token)
    await identity.users.remove("anna")
    assert "not valid here" in await refusal(identity, token)


async def test_the_key_that_signs_is_in_no_repr(identity: Identity) -> None:
    await a_token(identity)
    (key,) = (key for _, key in identity.tokens._keys)
    assert repr(key.secret) not in repr(key)
