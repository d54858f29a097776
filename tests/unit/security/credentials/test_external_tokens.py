"""Tokens of another issuer, by its public keys: which are taken, and every way in which they could be forged."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm

from sealane.errors import InvalidArgument, Unavailable
from sealane.node.identity import Identity
from sealane.security.credentials import key_sets
from sealane.security.credentials.external_tokens import LEEWAY_SECONDS, ROLES_MAX, SUBJECT_CHARS_MAX
from sealane.security.credentials.key_sets import KEY_SET_BYTES_MAX, KEYS_FRESH_SECONDS, RETRY_SECONDS_MIN
from sealane.security.grants.grants import Grant
from sealane.security.settings import SecuritySettings, TokenSettings
from tests.unit.security.identities import SECOND_US, Clock, an_identity, entered, refusal

RSA = rsa.generate_private_key(65_537, 2_048)
SHORT_RSA = rsa.generate_private_key(65_537, 1_024)  # it is to be refused
EC = ec.generate_private_key(ec.SECP256R1())
OTHER_EC = ec.generate_private_key(ec.SECP256R1())
ISSUER = "https://login.example.com"


def public(key: Any, kid: str, **more: Any) -> dict[str, Any]:
    algorithm = RSAAlgorithm if isinstance(key, rsa.RSAPrivateKey) else ECAlgorithm
    return {**algorithm.to_jwk(key.public_key(), as_dict=True), "kid": kid, **more}


class Issuer:
    """Where its keys are, and what it signs."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path = path
        self._clock = clock
        self.publish(public(RSA, "r"), public(EC, "e"))

    def publish(self, *keys: dict[str, Any]) -> None:
        self.path.write_text(json.dumps({"keys": keys}))

    def token(self, key: Any = EC, kid: str = "e", *, algorithm: str | None = None, **changes: Any) -> dict[str, str]:
        now = self._clock() / SECOND_US
        claims = {"iss": ISSUER, "aud": ["other", "sealane"], "sub": "anna", "iat": now, "exp": now + 600, **changes}
        algorithm = algorithm or ("RS256" if isinstance(key, rsa.RSAPrivateKey) else "ES256")
        claims = {name: value for name, value in claims.items() if value is not None}
        return {"token": jwt.encode(claims, key, algorithm=algorithm, headers={"kid": kid})}


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def issuer(tmp_path: Path, clock: Clock) -> Issuer:
    return Issuer(tmp_path / "keys.json", clock)


@pytest.fixture
async def identity(issuer: Issuer, clock: Clock) -> Identity:
    return await an_identity(clock, SecuritySettings(tokens=TokenSettings(issuer=ISSUER, keys=str(issuer.path))))


@pytest.mark.parametrize(("key", "kid"), [(RSA, "r"), (EC, "e")])
async def test_a_token_by_a_published_key_lets_its_subject_in(
    identity: Identity, issuer: Issuer, clock: Clock, key: Any, kid: str
) -> None:
    principal = await entered(identity, issuer.token(key, kid, roles=["member", "ops"], domain="shop"))
    assert (principal.name, principal.domain, principal.kind) == ("external:anna", "shop", "token")
    assert principal.roles == {"member", "ops"}
    assert principal.expires_us == clock() + 600 * SECOND_US


async def test_without_claims_of_its_own_a_subject_has_no_role_and_the_default_domain(
    identity: Identity, issuer: Issuer
) -> None:
    principal = await entered(identity, issuer.token())
    assert principal.domain == "default"
    assert principal.roles == frozenset()


async def test_roles_may_be_written_as_oauth_writes_scopes(identity: Identity, issuer: Issuer) -> None:
    assert (await entered(identity, issuer.token(roles="member producer"))).roles == {"member", "producer"}


async def test_roles_that_administer_the_node_cannot_be_claimed(identity: Identity, issuer: Issuer) -> None:
    await identity.grants.add(Grant("role:ops", "admin", "*/*"))
    await identity.grants.add(Grant("role:shopkeeper", "admin", "shop/*"))
    principal = await entered(identity, issuer.token(roles=["admin", "ops", "shopkeeper"]))
    assert principal.roles == {"shopkeeper"}


# --- algorithm confusion --------------------------------------------------------------------------------------------


async def test_an_hmac_by_the_public_key_as_its_secret_is_refused(identity: Identity, issuer: Issuer) -> None:
    pem = RSA.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    jwk = json.dumps(public(RSA, "r")).encode()
    claims = jwt.decode(issuer.token()["token"], options={"verify_signature": False})
    for secret in (pem, jwk):
        token = _hmac_token(claims, secret, {"alg": "HS256", "kid": "r"})
        assert "not valid here" in await refusal(identity, {"token": token})


def _hmac_token(claims: dict[str, Any], secret: bytes, header: dict[str, Any]) -> str:
    """By hand, since the library does not even let one forge it."""

    def encoded(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode()

    told = f"{encoded(json.dumps(header).encode())}.{encoded(json.dumps(claims).encode())}"
    return f"{told}.{encoded(hmac.new(secret, told.encode(), hashlib.sha256).digest())}"


async def test_no_signature_at_all_is_refused(identity: Identity, issuer: Issuer) -> None:
    claims = jwt.decode(issuer.token()["token"], options={"verify_signature": False})
    token = jwt.encode(claims, "", algorithm="none", headers={"kid": "e"})
    assert "not valid here" in await refusal(identity, {"token": token})


async def test_a_key_is_used_by_the_algorithm_of_its_kind_alone(identity: Identity, issuer: Issuer) -> None:
    for algorithm in ("RS384", "RS512", "PS256"):
        assert "not valid here" in await refusal(identity, issuer.token(RSA, "r", algorithm=algorithm))
    assert "not valid here" in await refusal(identity, issuer.token(RSA, "e")), (
        "an RSA signature by the name of another"
    )


async def test_the_issuer_cannot_sign_in_the_name_of_the_node(identity: Identity, issuer: Issuer) -> None:
    assert "not valid here" in await refusal(identity, issuer.token(iss="sealane"))


async def test_keys_of_a_set_that_lack_something_are_passed_over(identity: Identity, issuer: Issuer) -> None:
    issuer.publish({"kty": "oct", "kid": "s"}, {"kty": "EC", "kid": "x"}, {"kty": "RSA", "kid": "y"}, public(EC, "e"))
    assert (await entered(identity, issuer.token())).name == "external:anna"


async def test_symmetric_and_short_keys_of_a_set_are_not_used(identity: Identity, issuer: Issuer) -> None:
    issuer.publish(
        {"kty": "oct", "k": "a2tra2tra2tra2tra2tra2tra2tra2tra2tra2tra2s", "kid": "o"},
        public(SHORT_RSA, "s"),
        public(EC, "enc", use="enc"),
        {"kty": "nonsense", "kid": "n"},
        public(EC, "e"),
    )
    claims = jwt.decode(issuer.token()["token"], options={"verify_signature": False})
    token = _hmac_token(claims, b"k" * 32, {"alg": "HS256", "kid": "o"})
    assert "not valid here" in await refusal(identity, {"token": token})
    assert "not valid here" in await refusal(identity, issuer.token(EC, "enc"))
    short = await identity.authentication._by_credentials[1]._external._keys.find("s")  # type: ignore[attr-defined]
    assert short is None
    await entered(identity, issuer.token(EC, "e"))


@pytest.mark.parametrize("field", ["jku", "jwk", "x5u"])
async def test_a_key_that_a_token_brings_with_it_is_not_used(identity: Identity, issuer: Issuer, field: str) -> None:
    claims = jwt.decode(issuer.token()["token"], options={"verify_signature": False})
    brought = public(OTHER_EC, "e") if field == "jwk" else "https://127.0.0.1:1/keys"
    token = jwt.encode(claims, OTHER_EC, algorithm="ES256", headers={"kid": "e", field: brought})
    assert "not valid here" in await refusal(identity, {"token": token})


# --- claims ---------------------------------------------------------------------------------------------------------


async def test_a_foreign_signature_and_a_tampered_payload_are_refused(identity: Identity, issuer: Issuer) -> None:
    assert "not valid here" in await refusal(identity, issuer.token(OTHER_EC, "e"))
    header, _, signature = issuer.token()["token"].split(".")
    payload = issuer.token(sub="other")["token"].split(".")[1]
    assert "not valid here" in await refusal(identity, {"token": f"{header}.{payload}.{signature}"})


async def test_a_wrong_issuer_or_audience_is_refused(identity: Identity, issuer: Issuer) -> None:
    assert "not valid here" in await refusal(identity, issuer.token(iss="https://elsewhere.example"))
    assert "audience" in await refusal(identity, issuer.token(aud="elsewhere"))
    await refusal(identity, issuer.token(aud=None))


async def test_clocks_may_differ_by_seconds_and_no_more(identity: Identity, issuer: Issuer, clock: Clock) -> None:
    now = clock() / SECOND_US
    await entered(identity, issuer.token(exp=now - LEEWAY_SECONDS + 1))
    await entered(identity, issuer.token(nbf=now + LEEWAY_SECONDS))
    assert "expired" in await refusal(identity, issuer.token(exp=now - LEEWAY_SECONDS))
    assert "not valid yet" in await refusal(identity, issuer.token(nbf=now + LEEWAY_SECONDS + 1))
    assert "has no 'exp'" in await refusal(identity, issuer.token(exp=None))


@pytest.mark.parametrize("subject", ["", "a/b", "role:admin", "a b", "../x", "a\n", "x" * (SUBJECT_CHARS_MAX + 1)])
async def test_a_subject_that_is_no_name_is_refused(identity: Identity, issuer: Issuer, subject: str) -> None:
    assert "'sub'" in await refusal(identity, issuer.token(sub=subject))


@pytest.mark.parametrize("domain", ["", "_system", "a/b", "*", "~", 5, ["shop"], "x" * 200])
async def test_a_domain_that_cannot_be_is_refused(identity: Identity, issuer: Issuer, domain: Any) -> None:
    assert "'domain'" in await refusal(identity, issuer.token(domain=domain))


@pytest.mark.parametrize("roles", [5, {"admin": 1}, [5], ["r"] * (ROLES_MAX + 1)])
async def test_roles_that_cannot_be_are_refused(identity: Identity, issuer: Issuer, roles: Any) -> None:
    assert "roles" in await refusal(identity, issuer.token(roles=roles))


async def test_as_much_as_may_be_claimed_is_taken(identity: Identity, issuer: Issuer) -> None:
    roles = [f"r{number}" for number in range(ROLES_MAX)]
    assert len((await entered(identity, issuer.token(roles=roles, sub="x" * SUBJECT_CHARS_MAX))).roles) == ROLES_MAX


# --- where the keys are ---------------------------------------------------------------------------------------------


async def test_a_new_key_is_found_at_most_once_a_minute_and_an_old_one_is_forgotten(
    identity: Identity, issuer: Issuer, clock: Clock
) -> None:
    await entered(identity, issuer.token())
    issuer.publish(public(OTHER_EC, "new"))
    assert "not valid here" in await refusal(identity, issuer.token(OTHER_EC, "new")), "just looked"
    await entered(identity, issuer.token())
    clock.pass_(RETRY_SECONDS_MIN)
    await entered(identity, issuer.token(OTHER_EC, "new"))
    assert "not valid here" in await refusal(identity, issuer.token())


async def test_a_withdrawn_key_is_not_taken_for_longer_than_keys_are_fresh(
    identity: Identity, issuer: Issuer, clock: Clock
) -> None:
    await entered(identity, issuer.token())
    issuer.publish(public(RSA, "r"))
    clock.pass_(KEYS_FRESH_SECONDS - 1)
    await entered(identity, issuer.token())
    clock.pass_(1)
    assert "not valid here" in await refusal(identity, issuer.token())


async def test_keys_that_cannot_be_read_again_are_still_those_of_the_last_time(
    identity: Identity, issuer: Issuer, clock: Clock
) -> None:
    await entered(identity, issuer.token())
    issuer.path.unlink()
    clock.pass_(KEYS_FRESH_SECONDS)
    await entered(identity, issuer.token())


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"keys": 5}', "\xff", "x" * (KEY_SET_BYTES_MAX + 1)])
async def test_what_is_no_key_set_lets_nobody_in(identity: Identity, issuer: Issuer, text: str) -> None:
    issuer.path.write_text(text)
    with pytest.raises(Unavailable, match="try again later"):
        await entered(identity, issuer.token())


async def test_an_unknown_key_id_looks_no_more_than_once_a_minute(
    identity: Identity, issuer: Issuer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: list[str] = []
    read = key_sets._read

    def counting(source: str) -> bytes:
        looks.append(source)
        return read(source)

    monkeypatch.setattr(key_sets, "_read", counting)
    for _ in range(10):
        await refusal(identity, issuer.token(kid=os.urandom(4).hex()))
    assert len(looks) == 1
    clock.pass_(RETRY_SECONDS_MIN)
    await refusal(identity, issuer.token(kid="other"))
    assert len(looks) == 2


# --- settings -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {"keys": "https://x/keys"},
        {"issuer": ISSUER},
        {"issuer": "sealane", "keys": "keys.json"},
        {"issuer": ISSUER, "keys": "http://x/keys"},
        {"issuer": ISSUER, "keys": "file:///etc/passwd"},
        {"name": "role"},
        {"name": "a:b"},
        {"name": ""},
    ],
)
def test_settings_that_would_open_a_hole_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match=r"security\.tokens\."):
        TokenSettings(**settings)
