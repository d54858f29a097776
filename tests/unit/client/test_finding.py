"""Which node is meant, and what is known of it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from sealane.client.finding import DEFAULT_DATA, find_profile, load_profile
from sealane.client.profiles import ADMIN_PROFILE, Profile, write_profile
from sealane.client.user_profiles import ProfileNotFound, UserProfiles, config_directory
from sealane.errors import CorruptData, InvalidArgument, Unauthenticated, Unavailable


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def write_node_file(data: Path, *, pid: int | None = None, insecure: bool = True, **doors: str) -> None:
    data.mkdir(exist_ok=True)
    told = {"pid": os.getpid() if pid is None else pid, "doors": doors, "insecure": insecure}
    (data / "node.json").write_text(json.dumps(told))


def write_old_profile(text: str) -> None:
    config_directory().mkdir(parents=True, exist_ok=True)
    (config_directory() / "profile.yaml").write_text(text)


def ended_pid() -> int:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    return process.pid


def test_a_node_is_looked_for_in_the_promised_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_old_profile("url: sealane://old:1\n")
    assert find_profile().url == "sealane://old:1"

    UserProfiles().put(Profile("sealanes://user:2", name="mine"))
    assert find_profile().url == "sealanes://user:2"

    write_node_file(DEFAULT_DATA, native="127.0.0.1:3")
    assert find_profile().url == "sealane://127.0.0.1:3"

    write_node_file(tmp_path / "other", native="127.0.0.1:4")
    monkeypatch.setenv("SEALANE_DATA", str(tmp_path / "other"))
    assert find_profile().url == "sealane://127.0.0.1:4"
    assert find_profile(data=DEFAULT_DATA).url == "sealane://127.0.0.1:3"

    monkeypatch.setenv("SEALANE_PROFILE", "mine")
    assert find_profile().url == "sealanes://user:2"

    monkeypatch.setenv("SEALANE_URL", "sealanes://environment:5")
    assert find_profile().url == "sealanes://environment:5"

    assert find_profile(profile=Profile("sealanes://profile:6")).url == "sealanes://profile:6"
    assert find_profile("sealane://given:7").url == "sealane://given:7"


def test_a_node_with_tls_is_found_with_its_administrators_credential() -> None:
    write_node_file(DEFAULT_DATA, insecure=False, native="127.0.0.1:3")
    write_profile(DEFAULT_DATA / ADMIN_PROFILE, Profile("sealanes://127.0.0.1:3", ca="CA", key="K", name="admin"))

    found = find_profile()
    assert (found.url, found.ca, found.key) == ("sealanes://127.0.0.1:3", "CA", "K")


def test_a_url_brings_what_the_profile_of_that_address_holds() -> None:
    UserProfiles().put(Profile("sealanes://a:1,b:2", token="T", name="mine"))
    UserProfiles().put(Profile("sealanes://127.0.0.1:3", token="LOCAL", name="local"))

    assert find_profile("sealanes://b:2").token == "T"
    assert find_profile("sealanes://localhost:3").token == "LOCAL", "whatever this machine is called"
    assert find_profile("sealanes://b:3") == Profile("sealanes://b:3"), "another port is another node"
    assert find_profile("sealane://b:2") == Profile("sealane://b:2"), "nothing of it goes in plain text"


def test_the_named_profile_wins_over_that_of_the_address(monkeypatch: pytest.MonkeyPatch) -> None:
    UserProfiles().put(Profile("sealanes://a:1", token="FIRST", name="first"))
    UserProfiles().put(Profile("sealanes://elsewhere:1", token="SECOND", name="second"))
    monkeypatch.setenv("SEALANE_PROFILE", "second")

    found = find_profile("sealanes://a:1")
    assert (found.url, found.token) == ("sealanes://a:1", "SECOND")
    assert find_profile("sealane://a:1").token is None


def test_a_profile_that_cannot_be_read_does_not_disturb_who_means_another_node() -> None:
    profiles = UserProfiles()
    profiles.put(Profile("sealanes://a:1", token="T", name="mine"))
    profiles.path("broken").write_text("{")
    assert find_profile("sealanes://a:1").token == "T"


def test_the_profile_of_the_address_is_refused_if_others_can_read_it() -> None:
    path = UserProfiles().put(Profile("sealanes://a:1", token="T", name="mine"))
    path.chmod(0o644)
    with pytest.raises(Unauthenticated, match="chmod 600"):
        find_profile("sealanes://a:1")


def test_a_node_of_somebody_else_on_this_machine_says_what_to_do() -> None:
    write_node_file(DEFAULT_DATA, insecure=False, native="127.0.0.1:3")
    with pytest.raises(Unauthenticated, match="sealane profile add"):
        find_profile()


def test_without_any_trace_of_a_node_the_error_says_what_to_do() -> None:
    with pytest.raises(Unavailable, match="no node found: start one with `sealane up`, or give --url or --profile"):
        find_profile()


def test_a_node_that_has_ended_is_not_asked() -> None:
    pid = ended_pid()
    write_node_file(DEFAULT_DATA, pid=pid, native="127.0.0.1:2")
    with pytest.raises(Unavailable, match=rf"process {pid}, has ended\): start one"):
        find_profile()


def test_a_node_without_a_native_door_cannot_be_asked() -> None:
    write_node_file(DEFAULT_DATA, http="127.0.0.1:8080")
    with pytest.raises(Unavailable, match="has no native door"):
        find_profile()


def test_a_file_that_is_not_what_a_node_writes_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "node.json").write_text("[]")
    with pytest.raises(CorruptData, match="not what a node writes"):
        find_profile(data=tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "address: x", "url: 5", "url: [", "\tx"])
def test_an_old_profile_that_tells_no_address_is_an_error_that_names_it(text: str) -> None:
    write_old_profile(text)
    with pytest.raises(InvalidArgument, match=r"profile\.yaml"):
        find_profile()


def test_a_profile_is_given_by_its_name_or_by_its_file(tmp_path: Path) -> None:
    UserProfiles().put(Profile("sealanes://named", name="mine"))
    write_profile(tmp_path / "other.profile", Profile("sealanes://file"))

    assert load_profile("mine").url == "sealanes://named"
    for path in ("other.profile", "./other.profile", tmp_path / "other.profile"):
        assert load_profile(path).url == "sealanes://file"
    for missing in ("nobody", "nobody.profile", tmp_path / "nobody"):
        with pytest.raises(ProfileNotFound):
            load_profile(missing)
