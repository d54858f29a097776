"""The `Authorization` that calls by HTTP and gRPC show: a key or a token, or a user's name and password."""

from __future__ import annotations

import base64
import random

from sealane.doors.authorization import credentials_of
from sealane.errors import InvalidArgument, Unauthenticated
from sealane.security.credentials.key_text import KEY_PREFIX, read_api_key
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

SHORT_CHARS = 12
"""What is shorter may stand in any text."""
_WORDS = (b"Bearer ", b"Basic ", b"slk_", b":", b"=", b" ", b"\xff", b"\0", b"A" * 43, b"_")
SEEDS = (
    b"Bearer slk_" + b"a" * 12 + b"_" + b"A" * 43,
    b"bearer eyJhbGciOiJIUzI1NiJ9.e30.AAAA",
    b"Basic " + base64.b64encode("anna:pässword".encode()),
)


def check(data: bytes) -> bool:
    # Heads of requests are Latin-1.
    try:
        shown = credentials_of(data.decode("latin-1"))
    except Unauthenticated:
        return False
    assert shown is not None
    if "key" in shown:
        try:
            key = read_api_key(shown["key"])
        except InvalidArgument as error:
            return _is_kept_secret(shown["key"], str(error))
        assert read_api_key(key.written()) == key
    return True


def _is_kept_secret(key: str, told: str) -> bool:
    """False, as of all that is refused; what the error says has nothing of the key."""
    assert len(key) < SHORT_CHARS or key.removeprefix(KEY_PREFIX) not in told
    return False


def spoil(data: bytes, choose: random.Random) -> bytes:
    return mutate(data, choose, words=_WORDS)


TARGET = Target("authorization", SEEDS, check, spoil)
