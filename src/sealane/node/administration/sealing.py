"""`key.rotate`, `key.status`, `key.destroy`: the keys that seal what is stored.

The master key itself never passes here: backing it up and restoring it is done on the node's machine, with its files.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.engine.key_keeping import DomainKeys, KeepsKeys
from sealane.errors import InvalidArgument, StorageError
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.grants.grants import NODE

if TYPE_CHECKING:
    from sealane.node.session import Session


class RotateKeys(msgspec.Struct, frozen=True):
    domain: str | None = None
    """None: all domains, if `all` says so too."""
    all: bool = False


class Nothing(msgspec.Struct, frozen=True):
    pass


class DestroyKeys(msgspec.Struct, frozen=True):
    domain: str
    confirmed: str
    """The same name once more: nobody destroys a domain by one slip of the hand."""


async def rotate(session: Session, wish: RotateKeys, progress: Progress) -> dict[str, Any]:
    """A new key for one domain or for all; what older ones sealed is sealed anew in the background."""
    session.authorise("admin", NODE)
    keys = _keys(session)
    if (wish.domain is None) != wish.all:
        raise InvalidArgument("domain", "name one, or say `all`")
    domains = [each.domain for each in keys.status().domains] if wish.domain is None else [wish.domain]
    return {"rotated": {domain: await keys.rotate(domain) for domain in domains}}


async def rotate_master(session: Session, wish: Nothing, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    await _keys(session).rotate_master()
    return {"rotated": True}


async def status(session: Session, wish: Nothing, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    found = _keys(session).status()
    now_us = session.node.surroundings.clock()
    return {
        "domains": [
            {
                "domain": each.domain,
                "key": each.key_id,
                "made_us": each.made_us,
                "age_seconds": None if each.made_us is None else max(0, now_us - each.made_us) / 1e6,
                "older_keys": each.older,
            }
            for each in found.domains
        ],
        "resealing": found.resealing,
        "bytes_left": found.bytes_left,
        "bytes_total": found.bytes_total,
    }


async def destroy(session: Session, wish: DestroyKeys, progress: Progress) -> dict[str, Any]:
    session.authorise("admin", NODE)
    if wish.confirmed != wish.domain:
        raise InvalidArgument("confirmed", "is not the name of the domain: nothing was destroyed")
    return {"topics": await session.node.shredding.destroy(wish.domain)}


def _keys(session: Session) -> DomainKeys:
    engine = session.node.engine
    if not isinstance(engine, KeepsKeys):
        raise StorageError("this node keeps its messages in memory, so it has no keys; start it with a data directory")
    return engine.keys


COMMANDS_OF_SEALING: Commands = {
    "key.rotate": Command(RotateKeys, rotate, audited=("domain", "all")),
    "key.rotate_master": Command(Nothing, rotate_master),
    "key.status": Command(Nothing, status, "reads"),
    "key.destroy": Command(DestroyKeys, destroy, audited=("domain",)),
}
