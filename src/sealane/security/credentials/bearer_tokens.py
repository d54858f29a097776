"""Reading JSON Web Tokens: what they say before anything is believed, and what may be believed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sealane.errors import Unauthenticated, Unavailable

TOKEN_CHARS_MAX = 8 * 1024
"""A token with hundreds of roles fits; what is longer is not even looked at."""

_UNREADABLE = "this is no token (JWT) that can be read"


def header_of(token: str) -> dict[str, Any]:
    """What a token says of its key. Anyone may have written it. Raises `Unauthenticated`."""
    jwt = _library()
    try:
        return dict(jwt.get_unverified_header(token))
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise Unauthenticated(_UNREADABLE) from None


def claimed_issuer(token: str) -> str:
    """Who a token says has issued it. Anyone may have written it: it decides only by which keys the token is checked.

    Raises `Unauthenticated`.
    """
    jwt = _library()
    if len(token) > TOKEN_CHARS_MAX:
        raise Unauthenticated(f"this token has {len(token):,} characters, the limit is {TOKEN_CHARS_MAX:,}")
    try:
        claims = jwt.decode(token, options={"verify_signature": False})
    except (jwt.PyJWTError, ValueError, RecursionError):
        raise Unauthenticated(_UNREADABLE) from None
    return str(claims.get("iss"))


def checked_claims(
    token: str,
    key: Any,
    *,
    algorithms: Sequence[str],
    issuer: str,
    audience: str,
    now_us: int,
    leeway_seconds: float = 0.0,
) -> dict[str, Any]:
    """The claims of a token that this key has signed by one of these algorithms, for this audience and this time.

    `sub` is text and `exp` a number, whoever issued it. Raises `Unauthenticated`.
    """
    jwt = _library()
    try:
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=list(algorithms),
            issuer=issuer,
            audience=audience,
            # Times are checked below, by the node's own clock.
            options={"require": ["exp", "sub"], "verify_exp": False, "verify_nbf": False, "verify_iat": False},
        )
    except jwt.InvalidAudienceError:
        raise Unauthenticated("this token is for another audience") from None
    except jwt.MissingRequiredClaimError as error:
        raise Unauthenticated(f"this token has no {error.claim!r}") from None
    except (jwt.PyJWTError, ValueError, TypeError, RecursionError):
        raise Unauthenticated("this token is not valid here: its signature or its issuer is wrong") from None
    _check_times(claims, now_us / 1_000_000, leeway_seconds)
    return claims


def _check_times(claims: dict[str, Any], now: float, leeway: float) -> None:
    for name in ("exp", "nbf", "iat"):
        value = claims.get(name, now)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < 1e11:
            raise Unauthenticated(f"this token's {name!r} is no moment")
    if claims["exp"] + leeway <= now:
        raise Unauthenticated("this token has expired: log in again")
    if max(claims.get("nbf", now), claims.get("iat", now)) - leeway > now:
        raise Unauthenticated("this token is not valid yet; are the clocks right?")


def _library() -> Any:
    try:
        import jwt
    except ImportError:
        raise Unavailable("tokens need PyJWT on the node: pip install 'sealane[server]'") from None
    return jwt
