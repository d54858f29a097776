"""The profiles of one user: files in `~/.config/sealane/profiles`, and which of them is meant when none is named."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from sealane.client.profiles import PROFILE_SUFFIX, Profile, read_profile, write_profile
from sealane.errors import InvalidArgument, InvalidName, NotFound
from sealane.whole_files import PRIVATE, replace_file

PROFILE_NAME_CHARS_MAX = 128
"""Of a profile: it is a file's name."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*", re.ASCII)


class ProfileNotFound(NotFound):
    kind = "profile"


def config_directory() -> Path:
    """`~/.config/sealane`, or where the user keeps such things."""
    home = os.environ.get("XDG_CONFIG_HOME")
    return (Path(home) if home else Path.home() / ".config") / "sealane"


def check_profile_name(name: str) -> None:
    """Raise `InvalidName` for what cannot be a profile's."""
    if len(name) > PROFILE_NAME_CHARS_MAX or _NAME.fullmatch(name) is None:
        problem = f"up to {PROFILE_NAME_CHARS_MAX} letters, digits, '.', '_' and '-', the first a letter or digit"
        raise InvalidName("profile", name[:PROFILE_NAME_CHARS_MAX], f"a name has {problem}")


class UserProfiles:
    def __init__(self, directory: Path | None = None) -> None:
        """`directory` is `~/.config/sealane` unless it is another one."""
        self._home = directory or config_directory()
        self._default_file = self._home / "default-profile"

    def path(self, name: str) -> Path:
        """Where the profile of this name is, or would be. Raises `InvalidName`."""
        check_profile_name(name)
        return self._home / "profiles" / f"{name}{PROFILE_SUFFIX}"

    def names(self) -> list[str]:
        found = (self._home / "profiles").glob(f"*{PROFILE_SUFFIX}")
        return sorted(path.name.removesuffix(PROFILE_SUFFIX) for path in found if not path.name.startswith("."))

    def get(self, name: str) -> Profile:
        """Raises `ProfileNotFound`, and what `read_profile` raises."""
        try:
            profile = read_profile(self.path(name))
        except (FileNotFoundError, NotADirectoryError):
            known = ", ".join(self.names()) or "none"
            raise ProfileNotFound(name, f"there are: {known}; `sealane profile add` makes one") from None
        return msgspec.structs.replace(profile, name=name)

    def put(self, profile: Profile) -> Path:
        """Keep it under its name, instead of one that was there; the first one becomes the default."""
        path = self.path(profile.name)
        default = self.default or profile.name
        write_profile(path, profile)
        self.use(default)
        return path

    def remove(self, name: str) -> None:
        """Raises `ProfileNotFound`."""
        path = self.path(name)
        if not path.exists():
            self.get(name)
        path.unlink()
        if self._named_default() == name:
            self._default_file.unlink(missing_ok=True)

    @property
    def default(self) -> str | None:
        """The name of the profile that is meant when none is named: the chosen one, or the only one."""
        chosen, names = self._named_default(), self.names()
        if chosen is not None and chosen in names:
            return chosen
        return names[0] if len(names) == 1 else None

    def use(self, name: str) -> None:
        """Make it the default. Raises `ProfileNotFound`."""
        if name not in self.names():
            self.get(name)
        replace_file(self._default_file, f"{name}\n".encode(), PRIVATE)

    def _named_default(self) -> str | None:
        try:
            return self._default_file.read_text(encoding="utf-8").strip()
        except (FileNotFoundError, NotADirectoryError):
            return None


def read_old_profile(directory: Path) -> Profile | None:
    """What `profile.yaml` says, where earlier versions looked for a URL. Raises `InvalidArgument`."""
    path = directory / "profile.yaml"
    try:
        text = path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        import yaml
    except ImportError:
        raise InvalidArgument(str(path), "cannot be read without PyYAML; use `sealane profile add` instead") from None
    try:
        found = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise InvalidArgument(str(path), f"is not YAML: {error}") from None
    url = found.get("url") if isinstance(found, dict) else None
    if not isinstance(url, str):
        raise InvalidArgument(str(path), "has no `url:`, such as `url: sealane://127.0.0.1:7070`")
    return Profile(url)
