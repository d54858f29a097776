"""`sealane profile …` as a user types it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from sealane.cli.main import app
from sealane.client.profiles import Profile, write_profile
from sealane.client.user_profiles import UserProfiles
from sealane.security.credentials.key_text import ApiKeyText
from tests.certificates import TestAuthority

AUTHORITY = TestAuthority()
MINE = AUTHORITY.issue("anna")
KEY = ApiKeyText("a" * 12, bytes(range(32))).written()
URL = "sealanes://broker.example:7070"


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ca.crt").write_text(AUTHORITY.pem)
    MINE.write(tmp_path, "anna")


def sealane(*arguments: str, input: str = "") -> Result:
    return CliRunner().invoke(app, arguments, input=input)


def test_a_profile_of_files_holds_all_of_them_and_needs_them_no_more(tmp_path: Path) -> None:
    files = ("--ca", "ca.crt", "--certificate", "anna.crt", "--key", "anna.key")
    added = sealane("profile", "add", "--url", "sealanes://broker.example", *files)
    assert added.exit_code == 0, added.stderr

    profile = UserProfiles().get("broker.example")
    assert profile == Profile(URL, AUTHORITY.pem, MINE.certificate, MINE.key, name="broker.example")
    assert stat.S_IMODE(UserProfiles().path("broker.example").stat().st_mode) == 0o600


def test_a_profile_that_someone_gave_leads_to_where_the_node_is_seen_from_here(tmp_path: Path) -> None:
    write_profile(tmp_path / "admin.profile", Profile("sealanes://127.0.0.1:7070", ca=AUTHORITY.pem, token="t"))
    assert sealane("profile", "add", "admin.profile", "--url", URL).exit_code == 0
    assert UserProfiles().get("admin") == Profile(URL, ca=AUTHORITY.pem, token="t", name="admin")


def test_an_api_key_comes_by_standard_input_and_is_never_shown(tmp_path: Path) -> None:
    added = sealane("profile", "add", "--url", URL, "--api-key-stdin", "--name", "shop", input=f"{KEY}\n")
    assert added.exit_code == 0, added.stderr
    assert UserProfiles().get("shop").api_key == KEY

    shown = [added, sealane("profile", "show", "shop"), sealane("profile", "show", "shop", "--json")]
    shown += [sealane("profile", "list"), sealane("profile", "list", "--json")]
    for each in shown:
        assert each.exit_code == 0
        assert KEY.rpartition("_")[2] not in each.output


def test_what_is_shown_tells_who_and_whom_to_trust() -> None:
    files = ("--ca", "ca.crt", "--certificate", "anna.crt", "--key", "anna.key")
    sealane("profile", "add", "--url", URL, *files, "--name", "mine")
    facts = json.loads(sealane("profile", "show", "mine", "--json").stdout)
    assert facts["certificate_subject"] == "CN=anna"
    assert len(facts["ca_fingerprint"]) == len(facts["certificate_fingerprint"]) == 64
    assert "PRIVATE" not in json.dumps(facts)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ((), "--url: is missing"),
        (("--url", "broker.example"), "has no scheme"),
        (("--url", "sealane://broker.example", "--ca", "ca.crt"), "need TLS"),
        (("--url", URL, "--certificate", "anna.crt"), "private key"),
        (("--url", URL, "--key", "anna.key"), "certificate: is missing"),
        (("--url", URL, "--ca", "anna.key"), "no certificate that can be read"),
        (("--url", URL, "--api-key-stdin"), "this is no API key"),
        (("--url", URL, "--name", "../x"), "name '../x' refused"),
    ],
)
def test_what_can_be_no_profile_is_refused_as_bad_usage(arguments: tuple[str, ...], told: str) -> None:
    refused = sealane("profile", "add", *arguments, input="S3CRET")
    assert refused.exit_code == 2, refused.output
    assert told in refused.stderr
    assert "S3CRET" not in refused.output
    assert UserProfiles().names() == []


def test_a_profile_that_is_there_is_replaced_only_if_that_is_wanted() -> None:
    sealane("profile", "add", "--url", URL, "--name", "mine")
    assert sealane("profile", "add", "--url", "sealanes://other:1", "--name", "mine").exit_code == 2
    assert UserProfiles().get("mine").url == URL
    assert sealane("profile", "add", "--url", "sealanes://other:1", "--name", "mine", "--yes").exit_code == 0
    assert UserProfiles().get("mine").url == "sealanes://other:1"


def test_the_default_is_chosen_and_a_profile_removed() -> None:
    for name in ("one", "two"):
        sealane("profile", "add", "--url", URL, "--name", name)
    sealane("profile", "use", "two")
    listed = json.loads(sealane("profile", "list", "--json").stdout)
    assert [(each["name"], each["default"]) for each in listed] == [("one", False), ("two", True)]

    assert sealane("profile", "remove", "two").exit_code == 2, "nobody is there to say yes"
    assert sealane("profile", "remove", "two", "--yes").exit_code == 0
    assert UserProfiles().names() == ["one"]
    missing = sealane("profile", "use", "two")
    assert (missing.exit_code, "there are: one" in missing.stderr) == (1, True)


def test_a_profile_that_others_can_read_is_listed_with_its_problem_and_refused_in_use() -> None:
    path = UserProfiles().put(Profile(URL, token="S3CRET", name="mine"))
    path.chmod(0o644)
    assert "chmod 600" in sealane("profile", "list").stdout
    refused = sealane("topic", "list", "--profile", "mine")
    assert refused.exit_code == 3
    assert "chmod 600" in refused.stderr
    assert "S3CRET" not in refused.output


def test_every_command_that_takes_a_url_takes_a_profile() -> None:
    for words in (("topic", "list"), ("publish",), ("status",), ("ca", "issue")):
        assert "--profile " in sealane(*words, "--help").stdout
    assert "--profile " not in sealane("profile", "add", "--help").stdout
