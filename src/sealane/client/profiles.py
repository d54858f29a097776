"""Profiles: where a node is, whom to trust there and what to show it, all in one file that its owner alone may read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import msgspec

from sealane.errors import CorruptData, Unauthenticated
from sealane.whole_files import PRIVATE, replace_file

ADMIN_PROFILE = "admin.profile"
"""In a data directory: how the command line on the same machine reaches the node. Rewritten at each of its starts."""
PROFILE_SUFFIX = ".profile"
OTHERS = 0o077
"""What a file's mode must not allow to anybody but its owner, if it holds a secret."""


class Profile(msgspec.Struct, frozen=True, omit_defaults=True):
    """What it takes to reach a node. Certificates and keys are PEM texts, so that the file is all that is needed."""

    url: str
    ca: str | None = None
    """Who may have issued the node's certificate; without it, whoever this machine trusts."""
    certificate: str | None = None
    key: str | None = None
    """The private key of `certificate`."""
    api_key: str | None = None
    user: str | None = None
    token: str | None = None
    name: str = ""

    @property
    def has_secrets(self) -> bool:
        return not (self.key is None and self.api_key is None and self.token is None)

    @property
    def credential(self) -> str:
        """What it shows, for people: never the secret itself."""
        if self.api_key is not None:
            return "API key"
        if self.token is not None:
            return f"token of {self.user}" if self.user else "token"
        return "certificate" if self.certificate is not None else "none"

    def __repr__(self) -> str:
        """Without what is secret."""
        return f"Profile(name={self.name!r}, url={self.url!r}, credential={self.credential!r})"

    def __rich_repr__(self) -> list[tuple[str, Any]]:
        return [("name", self.name), ("url", self.url), ("credential", self.credential)]


def read_profile(path: Path) -> Profile:
    """What the file says. Raises `OSError`, `CorruptData` if it is no profile, and `Unauthenticated` if it holds a
    secret that others on this machine could read: then it is not one any more.
    """
    with path.open("rb") as file:
        mode = os.fstat(file.fileno()).st_mode
        text = file.read()
    try:
        profile = msgspec.json.decode(text, type=Profile)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        # What is wrong with it is not repeated, since it may be next to a secret.
        problem = "is not what `sealane profile add` writes; remove it and add the profile again"
        raise CorruptData(f"profile {str(path)!r} {problem}") from None
    if profile.has_secrets and mode & OTHERS:
        problem = f"it holds secrets and has mode {mode & 0o777:04o}, so that others can read it"
        raise Unauthenticated(f"profile {str(path)!r} is refused: {problem}; do `chmod 600 {path}`")
    return profile if profile.name else msgspec.structs.replace(profile, name=path.name.removesuffix(PROFILE_SUFFIX))


def write_profile(path: Path, profile: Profile) -> None:
    """Write it for its owner alone; whoever reads it meanwhile sees the old one or the new one, whole.

    A directory that is missing is made, for the owner alone too.
    """
    replace_file(path, msgspec.json.format(msgspec.json.encode(profile), indent=2) + b"\n", PRIVATE)
