"""What settings may be together: whatever a node must not start with is refused before anything is opened."""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

from sealane.doors.nameless.settings import NamelessDoorSettings
from sealane.errors import InvalidArgument, InvalidName, InvalidSettings
from sealane.security.accounts import check_account_name
from sealane.server.own_identity import names_of
from sealane.server.settings import DoorsSettings, ServerSettings

GRPC_NEEDS = ("grpc", "grpc_health", "grpc_reflection")
"""What the extra `grpc` brings for its door."""


def check(settings: ServerSettings) -> None:
    """Raise `InvalidSettings` with all that speaks against starting."""
    problems = []
    try:
        names_of((), settings.node.security.certificates.names)
    except InvalidArgument as error:
        problems.append(f"{error.argument} {error.problem}")
    for name, door in enabled_doors(settings.doors).items():
        if isinstance(door, NamelessDoorSettings):
            problems.extend(_against_nameless(name, door, insecure=settings.insecure))
        if settings.insecure and not is_loopback(door.host):
            problems.append(
                f"doors.{name}.host is {door.host!r}, which others can reach: with --insecure doors listen on "
                "loopback addresses only, such as 127.0.0.1"
            )
    missing = [name for name in GRPC_NEEDS if settings.doors.grpc.enabled and find_spec(name) is None]
    if missing:
        problems.append(
            f"doors.grpc.enabled is on, and {', '.join(missing)} is not installed: pip install 'sealane[grpc]', "
            "or turn it off"
        )
    if not enabled_doors(settings.doors):
        problems.append("no door is enabled, so nobody could come in; enable doors.native.enabled")
    if problems:
        raise InvalidSettings(problems)


def _against_nameless(name: str, door: NamelessDoorSettings, *, insecure: bool) -> Iterator[str]:
    """What speaks against opening a door whose protocol has no word for who comes."""
    if door.principal:
        try:
            check_account_name(door.principal)
        except InvalidName as error:
            yield f"doors.{name}.principal: {error}"
    if insecure:
        if door.tls:
            yield f"doors.{name}.tls is on, and with --insecure there is no certificate to show; turn one of them off"
        return
    if not door.principal and not door.tls:
        yield (
            f"doors.{name}.enabled is on, and nobody says who comes by it, since its protocol has no word for that: "
            f"name an account by doors.{name}.principal (`sealane account create` makes one), or turn doors.{name}.tls "
            "on for clients that have certificates"
        )
    if not (is_loopback(door.host) or door.tls or door.plain_text_beyond_loopback):
        yield (
            f"doors.{name}.host is {door.host!r}, which others can reach, and this door is plain text: turn "
            f"doors.{name}.tls on, or say in so many words that this is meant: doors.{name}.plain_text_beyond_loopback"
        )


def enabled_doors(doors: DoorsSettings) -> dict[str, Any]:
    """The settings of every enabled door by its name: each has `enabled`, `host` and `port`."""
    every = {field.name: getattr(doors, field.name) for field in dataclasses.fields(doors)}
    return {name: door for name, door in every.items() if door.enabled}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach the host. A name other than localhost could come to mean anything."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
