"""Profiles: one file each, for its owner alone; and which of a user's is meant."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest
from rich.pretty import pretty_repr

from sealane.client.profiles import OTHERS, Profile, read_profile, write_profile
from sealane.client.user_profiles import PROFILE_NAME_CHARS_MAX, ProfileNotFound, UserProfiles
from sealane.errors import CorruptData, InvalidName, Unauthenticated

FULL = Profile("sealanes://a:1", "CA", "CERTIFICATE", "SECRET-KEY", "SECRET-API", "anna", "SECRET-TOKEN", "mine")


def test_a_profile_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "new" / "mine.profile"
    write_profile(path, FULL)
    assert read_profile(path) == FULL


def test_a_profile_is_for_its_owner_alone_whatever_was_there_before(tmp_path: Path) -> None:
    path = tmp_path / "mine.profile"
    path.touch(mode=0o666)
    write_profile(path, FULL)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path], "no draft is left"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o644])
@pytest.mark.parametrize("secret", ["key", "api_key", "token"])
def test_a_profile_with_a_secret_that_others_can_read_is_refused_with_what_to_do(
    tmp_path: Path, mode: int, secret: str
) -> None:
    path = tmp_path / "mine.profile"
    write_profile(path, Profile("sealanes://a", **{secret: "S3CRET"}))
    path.chmod(mode)
    with pytest.raises(Unauthenticated, match=f"chmod 600 {path}") as refused:
        read_profile(path)
    assert mode & OTHERS
    assert "S3CRET" not in str(refused.value)


def test_a_profile_without_secrets_may_be_read_by_everyone(tmp_path: Path) -> None:
    path = tmp_path / "shared.profile"
    write_profile(path, Profile("sealanes://a", ca="CA"))
    path.chmod(0o644)
    assert read_profile(path).name == "shared"


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"url": 5}', b'{"url": "a", "token": 5}', b"\xff", b"url: x"])
def test_what_is_no_profile_is_an_error_that_names_the_file(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "mine.profile"
    path.write_bytes(text)
    with pytest.raises(CorruptData, match=r"mine\.profile"):
        read_profile(path)


def test_no_secret_is_in_what_is_shown_of_a_profile() -> None:
    for shown in (repr(FULL), str(FULL), f"{[FULL]}", pretty_repr(FULL)):
        assert "SECRET" not in shown
        assert "sealanes://a:1" in shown


# --- a user's profiles ------------------------------------------------------------------------------------------------


def test_the_first_profile_is_the_default_until_another_one_is_chosen(tmp_path: Path) -> None:
    profiles = UserProfiles(tmp_path)
    before = profiles.default
    for name in ("zoe", "anna"):
        profiles.put(Profile("sealanes://a", name=name))
    assert (before, profiles.names(), profiles.default) == (None, ["anna", "zoe"], "zoe")

    profiles.use("anna")
    assert profiles.default == "anna"


def test_a_removed_default_leaves_the_only_one_as_default(tmp_path: Path) -> None:
    profiles = UserProfiles(tmp_path)
    for name in ("a", "b", "c"):
        profiles.put(Profile("sealanes://a", name=name))
    profiles.remove("a")
    assert profiles.default is None, "nobody chooses for the user"
    profiles.remove("b")
    assert profiles.default == "c"


def test_a_profile_that_is_not_there_is_an_error_that_tells_which_are(tmp_path: Path) -> None:
    profiles = UserProfiles(tmp_path)
    profiles.put(Profile("sealanes://a", name="anna"))
    for act in (profiles.get, profiles.use, profiles.remove):
        with pytest.raises(ProfileNotFound, match="there are: anna"):
            act("bob")


@pytest.mark.parametrize("name", ["", "..", "../x", "a/b", ".hidden", "-x", "a b", "a\0", "ä", "x" * 129])
def test_a_name_that_would_leave_the_directory_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidName):
        UserProfiles(tmp_path).put(Profile("sealanes://a", name=name))
    assert os.listdir(tmp_path) == []


def test_the_longest_name_is_fine(tmp_path: Path) -> None:
    name = "x" * PROFILE_NAME_CHARS_MAX
    UserProfiles(tmp_path).put(Profile("sealanes://a", name=name))
    assert UserProfiles(tmp_path).get(name).name == name
