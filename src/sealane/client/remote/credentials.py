"""How a client says who it is: by an API key, a user's password, a token, or by nothing beyond its connection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from sealane.security.credentials.key_text import read_api_key
from sealane.wire.messages import Welcome
from sealane.wire.signing import NONCE_BYTES, Signer, connection_key, login_proof


class Shown(Protocol):
    """What one attempt to connect shows, and what follows from it. Several may be under way at a time."""

    @property
    def credentials(self) -> dict[str, Any] | None:
        """For `Hello`."""

    def signer(self, welcome: Welcome) -> Signer | None:
        """Signs what is published on this connection, if the node wants that."""


class Credentials(Protocol):
    """Who the client is. No secret is in its `repr`."""

    def show(self) -> Shown:
        """Anew for each attempt to connect."""


class _Plain:
    """The same for every connection; nothing is signed."""

    def __init__(self, credentials: dict[str, Any] | None) -> None:
        self.credentials = credentials

    def signer(self, welcome: Welcome) -> Signer | None:
        return None


class NoCredentials:
    """The connection says it all: by its certificate, or because the node asks nobody."""

    def show(self) -> Shown:
        return _Plain(None)


class Password:
    def __init__(self, user: str, password: str) -> None:
        self._shown = _Plain({"user": user, "password": password})

    def show(self) -> Shown:
        return self._shown


class Token:
    """A bearer token: one of the node's own, or of an issuer that the node trusts."""

    def __init__(self, token: str) -> None:
        self._shown = _Plain({"token": token})

    def show(self) -> Shown:
        return self._shown


class ApiKey:
    """`slk_…`. Its secret never leaves the process: what is sent are proofs of it."""

    def __init__(self, key: str, clock: Callable[[], int], entropy: Callable[[int], bytes]) -> None:
        """`clock` tells µs since 1970. Raises `InvalidArgument` if it is no key."""
        self._key = read_api_key(key)
        self._clock = clock
        self._entropy = entropy

    def show(self) -> Shown:
        return _ShownKey(self._key.id, self._key.secret, self._clock(), self._entropy(NONCE_BYTES))


class _ShownKey:
    def __init__(self, key_id: str, secret: bytes, time_us: int, nonce: bytes) -> None:
        self._secret = secret
        self._nonce = nonce
        proof = login_proof(secret, key_id, nonce, time_us)
        self.credentials: dict[str, Any] | None = {
            "key": {"id": key_id, "time_us": time_us, "nonce": nonce, "proof": proof}
        }

    def signer(self, welcome: Welcome) -> Signer | None:
        return Signer(connection_key(self._secret, self._nonce, welcome.nonce)) if welcome.nonce else None
