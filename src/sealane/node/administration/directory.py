"""Commands of the key directory: recipients register their public keys, senders fetch them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from sealane.errors import InvalidArgument
from sealane.node.administration.table import Command, Commands, Progress
from sealane.security.directory import RegisteredKey
from sealane.security.envelopes import RECIPIENTS_MAX
from sealane.security.grants.grants import NODE

if TYPE_CHECKING:
    from sealane.node.session import Session


class Register(msgspec.Struct):
    public_key: str
    name: str | None = None
    comment: str = ""


class Get(msgspec.Struct):
    names: list[str]


class Remove(msgspec.Struct):
    name: str | None = None
    fingerprint: str | None = None


class ListAll(msgspec.Struct):
    pass


def _own(session: Session, name: str | None) -> str:
    """Whose entry is meant. Everybody keeps their own; that of another one is for who administers the node."""
    own = session.principal.name
    if name is None or name == own:
        return own
    session.authorise("admin", NODE)
    return name


async def register(session: Session, wish: Register, progress: Progress) -> dict[str, Any]:
    name = _own(session, wish.name)
    directory = session.node.identity.directory
    key = await directory.register(name, wish.public_key, by=session.principal.name, comment=wish.comment)
    await session.note("directory.register", name, {"fingerprint": key.fingerprint})
    return {"name": name, **_shape(key)}


async def get(session: Session, wish: Get, progress: Progress) -> dict[str, list[dict[str, Any]]]:
    """For everyone who has come in: public keys are public."""
    if len(wish.names) > RECIPIENTS_MAX:
        raise InvalidArgument("names", f"are {len(wish.names)}, at most {RECIPIENTS_MAX} are answered at once")
    directory = session.node.identity.directory
    return {name: [_shape(key) for key in directory.keys(name)] for name in wish.names}


async def remove(session: Session, wish: Remove, progress: Progress) -> dict[str, Any]:
    name = _own(session, wish.name)
    removed = await session.node.identity.directory.remove(name, wish.fingerprint)
    await session.note("directory.remove", name, {"fingerprint": ", ".join(removed)})
    return {"name": name, "removed": removed}


async def list_all(session: Session, wish: ListAll, progress: Progress) -> list[dict[str, Any]]:
    """Who can be written to is no matter of everyone: names tell of accounts."""
    session.authorise("admin", NODE)
    return [
        {"name": name, "keys": [_shape(key) for key in keys]} for name, keys in session.node.identity.directory.all()
    ]


def _shape(key: RegisteredKey) -> dict[str, Any]:
    shape: dict[str, Any] = msgspec.to_builtins(key)
    return shape


COMMANDS_OF_DIRECTORY: Commands = {
    "directory.register": Command(Register, register, "notes"),
    # Every sender asks, again and again, for what is public: that is no entry.
    "directory.get": Command(Get, get, "notes"),
    "directory.remove": Command(Remove, remove, "notes"),
    "directory.list": Command(ListAll, list_all, "reads"),
}
