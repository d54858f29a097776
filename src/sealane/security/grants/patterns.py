"""Patterns of resources: `domain/name`, where `*` is any characters, and what one of them takes in.

Nothing in a name or a pattern but `*` has a meaning of its own, and a `*` at the beginning of a part passes over names
that begin with `_`, as a shell's does over those that begin with a dot: they are the system's.
"""

from __future__ import annotations

import re
from functools import lru_cache

from sealane.errors import InvalidArgument

OWN_DOMAIN = "~"
"""In the domain's place: the domain of whoever asks."""
PATTERN_PART_CHARS_MAX = 128
"""Of a pattern's domain and of its name: as for names themselves."""

_PART = re.compile(r"[A-Za-z0-9._*-]+", re.ASCII)


def check_pattern(pattern: str) -> None:
    """Raise `InvalidArgument` unless it is `domain/name`, each of the characters of names and `*`."""
    domain, slash, name = pattern.partition("/")
    shown = repr(pattern if len(pattern) <= 2 * PATTERN_PART_CHARS_MAX else pattern[:PATTERN_PART_CHARS_MAX] + "…")
    if not slash:
        raise InvalidArgument("pattern", f"{shown} has no slash; it is `domain/name`, such as `shop/orders` or `~/*`")
    if "/" in name:
        raise InvalidArgument("pattern", f"{shown} has more than one slash; it is `domain/name`")
    for what, part in (("domain", domain), ("name", name)):
        if not part:
            raise InvalidArgument("pattern", f"{shown} has an empty {what}; `*` takes in every one")
        if len(part) > PATTERN_PART_CHARS_MAX:
            problem = f"{shown} has a {what} of {len(part):,} characters, the limit is {PATTERN_PART_CHARS_MAX}"
            raise InvalidArgument("pattern", problem)
        if (what, part) != ("domain", OWN_DOMAIN) and _PART.fullmatch(part) is None:
            allowed = "letters, digits, '.', '_', '-' and '*' are allowed, and '~' alone as the domain"
            raise InvalidArgument("pattern", f"{shown} has another character in its {what}: {allowed}")


def takes_in(
    pattern: str, resource: str, own_domain: str, *, system_domains: bool = False, system_names: bool = False
) -> bool:
    """Whether the pattern takes in `domain/name`.

    `system_domains`, `system_names`: whether a `*` takes in those that begin with `_` too.
    """
    wanted_domain, _, wanted_name = pattern.partition("/")
    domain, _, name = resource.partition("/")
    if not _part_takes_in(wanted_name, name, system=system_names):
        return False
    if wanted_domain == OWN_DOMAIN:
        # Nobody's own domain is the system's or everyone's, whatever a credential says.
        return domain == own_domain and domain[:1] not in ("_", OWN_DOMAIN)
    return _part_takes_in(wanted_domain, domain, system=system_domains)


def contains(pattern: str, other: str, own_domain: str) -> bool:
    """Whether all that the other pattern could ever take in, for whomever, is taken in by this one.

    A `*` of the other one is matched by a `*` alone, like any character that is not written in the pattern.
    """
    return takes_in(pattern, other, own_domain, system_domains=True, system_names=True)


def _part_takes_in(pattern: str, part: str, *, system: bool) -> bool:
    if part.startswith("_") and not system and pattern.startswith("*"):
        return False
    return _expression(pattern).fullmatch(part) is not None


@lru_cache(maxsize=10_000)
def _expression(pattern: str) -> re.Pattern[str]:
    # Several stars in a row are one: each more would only cost time, and many of them more than there is.
    pieces = re.split(r"\*+", pattern)
    if len(pieces) == 1:
        return re.compile(re.escape(pattern), re.DOTALL)
    first, *middle, last = map(re.escape, pieces)
    # Each piece is taken where it comes first (an atomic group): nothing is gained by looking further, so the time is
    # in proportion to the text, whatever the pattern.
    found = "".join(f"(?>[^/]*?{piece})" for piece in middle)
    return re.compile(f"{first}{found}[^/]*{last}", re.DOTALL)
