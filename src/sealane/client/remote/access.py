"""From what the caller of `sealane.connect` gives to where a lane goes, whom it trusts there, and what it shows."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from sealane.client.finding import ProfileLike, find_profile
from sealane.client.profiles import Profile
from sealane.client.remote.addresses import Nodes, is_loopback, parse_urls
from sealane.client.remote.credentials import ApiKey, Credentials, NoCredentials, Password, Token
from sealane.client.remote.pem import PemLike
from sealane.client.remote.tls import ClientTls
from sealane.errors import InvalidArgument
from sealane.node.surroundings import Surroundings


class Access(NamedTuple):
    nodes: Nodes
    tls: ClientTls | None
    credentials: Credentials


@dataclass(frozen=True, slots=True, repr=False)
class Given:
    """The options of `sealane.connect` that say who is asking. What is secret is in no `repr`, so none is."""

    urls: str | Sequence[str] | None = None
    profile: ProfileLike | None = None
    ca: PemLike | None = None
    certificate: PemLike | None = None
    certificate_key: PemLike | None = None
    key: str | None = None
    user: str | None = None
    password: str | None = None
    token: str | None = None
    data: str | os.PathLike[str] | None = None

    def __post_init__(self) -> None:
        for argument in ("key", "user", "password", "token"):
            value = getattr(self, argument)
            if value is not None and not (isinstance(value, str) and value):
                raise InvalidArgument(argument, "must be a text that is not empty")
        shown = [argument for argument in ("key", "user", "token") if getattr(self, argument) is not None]
        if len(shown) > 1:
            raise InvalidArgument(shown[1], f"cannot be given beside {shown[0]}: a lane is one principal's")
        if (self.user is None) != (self.password is None):
            missing, there = ("password", "user") if self.password is None else ("user", "password")
            raise InvalidArgument(missing, f"is missing: {there} is of no use without it")
        if self.certificate is None and self.certificate_key is not None:
            raise InvalidArgument("certificate", "is missing: its key alone shows nothing")

    @property
    def shows_something(self) -> bool:
        return not (self.key is None and self.user is None and self.token is None and self.certificate is None)


def find_access(given: Given, surroundings: Surroundings) -> Access:
    """Raises `InvalidArgument` for what does not go together, and what finding a profile raises."""
    nodes, given = complete(given)
    tls = ClientTls(ca=given.ca, certificate=given.certificate, key=given.certificate_key) if nodes.tls else None
    return Access(nodes, tls, _credentials(given, surroundings))


def complete(given: Given) -> tuple[Nodes, Given]:
    """Where the nodes are, and all that is trusted there and shown to them, wherever that was found.

    What is given comes first; then, for nodes with TLS, the variables `SEALANE_API_KEY`, `SEALANE_TOKEN` and
    `SEALANE_CA`; then what the profile says. A credential that is given replaces all of the profile's, which still
    tells whom to trust. Raises what `find_access` raises.
    """
    data = None if given.data is None else Path(given.data)
    profile = find_profile(given.urls, profile=given.profile, data=data)
    nodes = parse_urls(profile.url)
    if not nodes.tls:
        # What a profile or a variable holds is not for a node that cannot show who it is.
        _check_plain(given, nodes)
        return nodes, given
    if not given.shows_something:
        given = _from_environment(given) or _from_profile(given, profile)
    return nodes, replace(given, ca=given.ca or os.environ.get("SEALANE_CA") or profile.ca)


def _from_environment(given: Given) -> Given | None:
    """With what the variables say, unless a profile was named."""
    key, token = os.environ.get("SEALANE_API_KEY"), os.environ.get("SEALANE_TOKEN")
    if given.profile is not None or not (key or token):
        return None
    if key and token:
        raise InvalidArgument("SEALANE_TOKEN", "cannot be set beside SEALANE_API_KEY: a lane is one principal's")
    return replace(given, key=key or None, token=token or None)


def _from_profile(given: Given, profile: Profile) -> Given:
    token = None if profile.api_key else profile.token
    return replace(
        given, certificate=profile.certificate, certificate_key=profile.key, key=profile.api_key, token=token
    )


def _check_plain(given: Given, nodes: Nodes) -> None:
    for argument in ("ca", "certificate"):
        if getattr(given, argument) is not None:
            raise InvalidArgument(argument, "is of no use without TLS: write sealanes:// instead of sealane://")
    if given.password is None and given.token is None:
        return
    if not all(is_loopback(address.host) for address in nodes.addresses):
        argument = "token" if given.password is None else "password"
        problem = "would cross the network in plain text: write sealanes:// instead of sealane://"
        raise InvalidArgument(argument, problem)


def _credentials(given: Given, surroundings: Surroundings) -> Credentials:
    if given.user is not None and given.password is not None:
        return Password(given.user, given.password)
    if given.key is not None:
        return ApiKey(given.key, surroundings.clock, surroundings.entropy)
    return NoCredentials() if given.token is None else Token(given.token)
