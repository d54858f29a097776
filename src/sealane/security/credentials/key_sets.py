"""The public keys of someone else who issues tokens (JWKS): from a file or an https URL, fetched now and then."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

from sealane.errors import Unavailable
from sealane.log import get_log

KEYS_FRESH_SECONDS = 300.0
"""Keys are looked at again after so long, when someone comes: a key that was withdrawn is not taken for longer."""
RETRY_SECONDS_MIN = 60.0
"""An unknown key, or a source that does not answer, causes no more than one look in this time."""
FETCH_SECONDS_MAX = 5.0
"""For one fetch: half of what a handshake may take."""
KEY_SET_BYTES_MAX = 256 << 10
"""Of a key set: hundreds of keys."""
RSA_BITS_MIN = 2_048
"""Of an RSA key that may sign tokens: shorter ones can be broken."""

log = get_log("sealane.security")


class PublicKey:
    """One key of a set, and the algorithms that a token may have been signed with by its owner."""

    __slots__ = ("algorithms", "key")

    def __init__(self, key: Any, algorithms: Sequence[str]) -> None:
        self.key = key
        self.algorithms = tuple(algorithms)


class KeySet:
    """`source` is a path or an https URL; `clock` tells µs since 1970."""

    def __init__(self, source: str, clock: Callable[[], int]) -> None:
        self._source = source
        self._clock = clock
        self._keys: dict[str, PublicKey] = {}
        self._fetched_us: int | None = None
        self._tried_us: int | None = None
        self._looking = asyncio.Lock()

    async def find(self, key_id: str) -> PublicKey | None:
        """The key of this id. Raises `Unavailable` if there never was an answer from where they are."""
        if not self._is_fresh() or key_id not in self._keys:
            async with self._looking:
                if self._may_look() and (not self._is_fresh() or key_id not in self._keys):
                    await self._look()
        if self._fetched_us is None:
            raise Unavailable("the keys that tokens are checked with cannot be had at the moment: try again later")
        return self._keys.get(key_id)

    def _is_fresh(self) -> bool:
        return self._fetched_us is not None and self._clock() - self._fetched_us < KEYS_FRESH_SECONDS * 1_000_000

    def _may_look(self) -> bool:
        return self._tried_us is None or self._clock() - self._tried_us >= RETRY_SECONDS_MIN * 1_000_000

    async def _look(self) -> None:
        self._tried_us = self._clock()
        try:
            text = await asyncio.to_thread(_read, self._source)
            self._keys = _public_keys(text)
        except (OSError, ValueError, URLError) as error:
            # The keys that were there last are still the issuer's, as far as anyone knows.
            log.warning("the keys of a token issuer cannot be read", source=self._source, cause=str(error))
            return
        self._fetched_us = self._tried_us


class _NoRedirects(HTTPRedirectHandler):
    """A redirect could lead away from https, or to somewhere inside."""

    def redirect_request(self, *arguments: Any, **named: Any) -> None:
        return None


def _read(source: str) -> bytes:
    if source.startswith("https://"):
        request = Request(source, headers={"Accept": "application/json"})  # noqa: S310  # it is https, just looked at
        with build_opener(_NoRedirects).open(request, timeout=FETCH_SECONDS_MAX) as answer:
            text: bytes = answer.read(KEY_SET_BYTES_MAX + 1)
    else:
        with Path(source).open("rb") as file:
            text = file.read(KEY_SET_BYTES_MAX + 1)
    if len(text) > KEY_SET_BYTES_MAX:
        raise ValueError(f"it is longer than {KEY_SET_BYTES_MAX:,} bytes")
    return text


def _public_keys(text: bytes) -> dict[str, PublicKey]:
    import jwt

    try:
        entries = json.loads(text)["keys"]
    except (KeyError, TypeError, RecursionError):
        entries = None
    if not isinstance(entries, list):
        raise ValueError("it is no key set: it has no list of `keys`")
    found: dict[str, PublicKey] = {}
    for entry in entries:
        try:
            key = jwt.PyJWK.from_dict(entry).key
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError, KeyError):
            continue  # Sets have keys of other kinds, for other uses.
        algorithms = _algorithms(key)
        if algorithms and entry.get("use", "sig") == "sig" and isinstance(entry.get("kid"), str):
            found[entry["kid"]] = PublicKey(key, algorithms)
    return found


def _algorithms(key: Any) -> tuple[str, ...]:
    """By the kind of key alone. A symmetric one signs nothing here: whoever can read the set could sign too."""
    if isinstance(key, RSAPublicKey) and key.key_size >= RSA_BITS_MIN:
        return ("RS256",)
    if isinstance(key, EllipticCurvePublicKey) and isinstance(key.curve, SECP256R1):
        return ("ES256",)
    return ()
