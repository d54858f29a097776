"""What topics, subscriptions, exchanges and domains may be called."""

from __future__ import annotations

import re

from sealane.errors import InvalidName
from sealane.message.limits import Limits

_ALLOWED = re.compile(r"[A-Za-z0-9._-]+", re.ASCII)

DEFAULT_DOMAIN = "default"
OPEN_SYSTEM_TOPICS = frozenset({"_system/alerts", "_system/routes", "_system/route_telemetry"})
"""Topics of the system that jobs write: whoever is granted to publish to one may, and it is made when it is used."""


def check_name(kind: str, name: str, limits: Limits, *, system: bool = False) -> None:
    """Raise `InvalidName` unless `name` may name a `kind`; names that start with "_" are for the system alone."""
    if not isinstance(name, str):
        raise InvalidName(kind, repr(name), "a name is text")
    if not name:
        raise InvalidName(kind, name, "it is empty")
    if len(name) > limits.name_chars_max:
        shown = name[: limits.name_chars_max] + "…"
        raise InvalidName(
            kind,
            shown,
            f"it has {len(name):,} characters, the limit is {limits.name_chars_max} (limits.name_chars_max)",
        )
    if _ALLOWED.fullmatch(name) is None:
        raise InvalidName(kind, name, "only letters, digits, '.', '_' and '-' are allowed")
    if name in (".", ".."):
        raise InvalidName(kind, name, "'.' and '..' are not names")
    if name[0] == "_" and not system:
        raise InvalidName(kind, name, "names that start with '_' belong to the system")


def split_topic(name: str, default_domain: str = DEFAULT_DOMAIN) -> tuple[str, str]:
    """Split "domain/name", or a bare name in `default_domain`. The parts still have to pass `check_name`."""
    domain, slash, topic = name.partition("/")
    return (domain, topic) if slash else (default_domain, name)
