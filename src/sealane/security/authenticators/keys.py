"""By an API key: a proof that one has it, or the whole key where the door keeps it secret on its way."""

from __future__ import annotations

import hmac
from collections.abc import Callable
from typing import Annotated

import msgspec

from sealane.errors import InvalidArgument, Unauthenticated, Unavailable
from sealane.security.credentials.api_keys import ApiKey, ApiKeys
from sealane.security.credentials.key_text import SECRET_BYTES, read_api_key
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from sealane.wire.signing import NONCE_BYTES, SIGNATURE_BYTES, login_proof

CLOCK_SKEW_SECONDS_MAX = 300
"""How far a client's clock may be from the node's: five minutes, as Kerberos has it. Nonces are remembered so long."""
LOGINS_REMEMBERED_MAX = 100_000
"""Nonces of one key within that time: 160 logins a second, each of about 100 bytes; more of them have to wait."""

_REFUSED = "this API key is not valid here"
_SHAPE = 'an API key is shown as {"key": "slk_…"} or {"key": {"id", "time_us", "nonce", "proof"}}'
_NOBODYS = bytes(SECRET_BYTES)


class _Proof(msgspec.Struct, forbid_unknown_fields=True):
    id: Annotated[str, msgspec.Meta(max_length=64)]
    time_us: Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    proof: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]


class KeyAuthenticator:
    """Implements `Authenticator`."""

    name = "key"

    def __init__(self, keys: ApiKeys, clock: Callable[[], int]) -> None:
        self._keys = keys
        self._clock = clock
        self._logins: dict[str, _Logins] = {}
        self._began_us = clock()

    async def authenticate(self, shown: Introduction) -> Principal | None:
        if shown.credentials is None or "key" not in shown.credentials:
            return None
        value = shown.credentials["key"]
        if isinstance(value, str):
            return self._by_whole_key(value)
        try:
            return self._by_proof(msgspec.convert(value, _Proof))
        except msgspec.ValidationError:
            raise Unauthenticated(_SHAPE) from None

    def _by_whole_key(self, text: str) -> Principal:
        try:
            given = read_api_key(text)
        except InvalidArgument as error:
            raise Unauthenticated(error.problem) from None
        key, secret = self._key_or_nobodys(given.id)
        # Both sides of an `and` are looked at whatever the first one is: what is not there takes as long.
        matches = hmac.compare_digest(given.secret, secret)
        if key is None or not matches:
            raise Unauthenticated(_REFUSED)
        return self._keys.principal(key)

    def _by_proof(self, given: _Proof) -> Principal:
        self._check_clock(given.time_us)
        key, secret = self._key_or_nobodys(given.id)
        matches = hmac.compare_digest(given.proof, login_proof(secret, given.id, given.nonce, given.time_us))
        if key is None or not matches:
            raise Unauthenticated(_REFUSED)
        # Only whoever has the key comes so far: a stranger can neither fill what is remembered nor learn of it.
        principal = self._keys.principal(key)
        logins = self._logins.setdefault(key.id, _Logins())
        logins.take(given.nonce, given.time_us, self._clock() - CLOCK_SKEW_SECONDS_MAX * 1_000_000)
        return principal

    def _key_or_nobodys(self, key_id: str) -> tuple[ApiKey | None, bytes]:
        key = self._keys.find(key_id)
        if key is None or not key.secret:
            return None, _NOBODYS
        return key, key.secret

    def _check_clock(self, time_us: int) -> None:
        skew = (time_us - self._clock()) / 1_000_000
        if abs(skew) > CLOCK_SKEW_SECONDS_MAX:
            direction = "ahead of" if skew > 0 else "behind"
            raise Unauthenticated(
                f"the client's clock is {abs(skew):,.0f} s {direction} the node's, {CLOCK_SKEW_SECONDS_MAX} s are "
                "allowed: set it right"
            )
        if time_us < self._began_us:
            # What was shown to this node before it began is not remembered, so it cannot be told from a repetition.
            raise Unavailable("the node has just begun, by a clock ahead of the client's: try again")


class _Logins:
    """The nonces of one key that were taken in the last minutes, the oldest first."""

    def __init__(self) -> None:
        self._taken: dict[bytes, int] = {}

    def take(self, nonce: bytes, time_us: int, forget_before_us: int) -> None:
        """Raises `Unauthenticated` if it was taken before, `Unavailable` if there are too many to remember."""
        while self._taken and self._taken[oldest := next(iter(self._taken))] < forget_before_us:
            del self._taken[oldest]
        if nonce in self._taken:
            raise Unauthenticated("this login was used before: a proof is good for one connection")
        if len(self._taken) >= LOGINS_REMEMBERED_MAX:
            raise Unavailable(f"this API key has logged in {LOGINS_REMEMBERED_MAX:,} times within minutes: try later")
        self._taken[nonce] = time_us
