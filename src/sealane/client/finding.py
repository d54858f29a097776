"""Which node is meant when nobody says so, and what is known of it: the same for Python and for the command line."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from sealane.client.notices import NodeNotice, read_node_notice
from sealane.client.profiles import ADMIN_PROFILE, PROFILE_SUFFIX, Profile, read_profile
from sealane.client.remote.addresses import Address, Nodes, is_loopback, parse_urls
from sealane.client.user_profiles import ProfileNotFound, UserProfiles, config_directory, read_old_profile
from sealane.errors import SealaneError, Unauthenticated, Unavailable

DEFAULT_DATA = Path("sealane-data")

ProfileLike = str | os.PathLike[str] | Profile
"""A profile, its name, or the path of its file."""


def find_profile(
    urls: str | Sequence[str] | None = None, *, profile: ProfileLike | None = None, data: Path | None = None
) -> Profile:
    """How to reach the node that is meant, with what is known of it.

    Where it is: `urls`, the given profile, `SEALANE_URL`, `SEALANE_PROFILE`, the node that runs on the data directory
    (`data`, `SEALANE_DATA`, `./sealane-data`), the user's profiles. What to show it, where only a URL is given: what
    the profile of that address says. Raises `Unavailable` with what to do when none of them tells.
    """
    wanted = None if urls is None else parse_urls(urls)
    if profile is not None:
        return _at(wanted, load_profile(profile))
    if wanted is None and (url := os.environ.get("SEALANE_URL")):
        wanted = parse_urls(url)
    if (wanted is None or wanted.tls) and (named := os.environ.get("SEALANE_PROFILE")):
        return _at(wanted, load_profile(named))
    directory = data or _data_directory()
    if wanted is None:
        return _running_on(directory) or _default_of_user() or _nowhere(directory)
    return _at(wanted, matching_profile(wanted, directory) if wanted.tls else None)


def load_profile(profile: ProfileLike) -> Profile:
    """The profile itself, the user's of that name, or the one of that file: a path has a `/` or ends in `.profile`.

    Raises `ProfileNotFound`, `Unauthenticated` if others may read its secrets, `CorruptData`.
    """
    if isinstance(profile, Profile):
        return profile
    text = os.fspath(profile)
    if isinstance(profile, str) and "/" not in text and not text.endswith(PROFILE_SUFFIX):
        return UserProfiles().get(text)
    try:
        return read_profile(Path(text))
    except (FileNotFoundError, NotADirectoryError):
        raise ProfileNotFound(text, "no file is there") from None


def running_node(data: Path) -> NodeNotice | None:
    """What the node says that runs on this data directory; None if none does."""
    notice = read_node_notice(data)
    return notice if notice is not None and notice.is_running else None


def _data_directory() -> Path:
    return Path(os.environ.get("SEALANE_DATA") or DEFAULT_DATA)


def _at(wanted: Nodes | None, profile: Profile | None) -> Profile:
    if wanted is None:
        assert profile is not None
        return profile
    return Profile(wanted.url) if profile is None else msgspec.structs.replace(profile, url=wanted.url)


# --- the data directory -----------------------------------------------------------------------------------------------


def url_of(notice: NodeNotice) -> str | None:
    """Where its native door is; None if it has none."""
    address = notice.doors.get("native")
    if address is None:
        return None
    return f"{'sealane' if notice.insecure else 'sealanes'}://{address}"


def _running_on(data: Path) -> Profile | None:
    notice = running_node(data)
    url = None if notice is None else url_of(notice)
    if url is None:
        return None
    nodes = parse_urls(url)
    if not nodes.tls:
        return Profile(url)
    found = matching_profile(nodes, data)
    if found is None:
        path = data / ADMIN_PROFILE
        problem = f"{str(path)!r} cannot be read by you, and no profile of yours is for {url}"
        raise Unauthenticated(f"{problem}: have one made by `sealane ca issue`, then `sealane profile add`")
    return msgspec.structs.replace(found, url=url)


def _nowhere(data: Path) -> Profile:
    notice = read_node_notice(data)
    told = ""
    if notice is not None and not notice.is_running:
        told = f" (that of {str(data)!r}, process {notice.pid}, has ended)"
    elif notice is not None:
        told = f" (that of {str(data)!r} has no native door)"
    raise Unavailable(f"no node found{told}: start one with `sealane up`, or give --url or --profile")


# --- profiles ---------------------------------------------------------------------------------------------------------


def _default_of_user() -> Profile | None:
    profiles = UserProfiles()
    name = profiles.default
    return read_old_profile(config_directory()) if name is None else profiles.get(name)


def matching_profile(wanted: Nodes, data: Path | None = None) -> Profile | None:
    """The first profile that is for one of these addresses: that of a node on this machine, or one of the user's."""
    data = data or _data_directory()
    places = {_place(address) for address in wanted.addresses}
    for path in _profile_files(data):
        url = _url_in(path)
        if url is not None and url.tls and not places.isdisjoint(map(_place, url.addresses)):
            return read_profile(path)
    return None


def _profile_files(data: Path) -> Iterator[Path]:
    yield data / ADMIN_PROFILE
    profiles = UserProfiles()
    yield from (profiles.path(name) for name in profiles.names())


def _place(address: Address) -> Address:
    """The same for all names of this machine."""
    return Address("localhost", address.port) if is_loopback(address.host) else address


class _WhereTo(msgspec.Struct):
    url: str


def _url_in(path: Path) -> Nodes | None:
    """Where a profile leads; None if that cannot be told: it is then not the one that is looked for."""
    try:
        return parse_urls(msgspec.json.decode(path.read_bytes(), type=_WhereTo).url)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError, SealaneError):
        return None
