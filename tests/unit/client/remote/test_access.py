"""What can be given to `sealane.connect` about who is asking, and what goes together."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

import sealane
from sealane.client.profiles import Profile
from sealane.client.remote.access import Access, Given, find_access
from sealane.client.remote.credentials import ApiKey, NoCredentials, Password, Token
from sealane.client.remote.pem import PEM_BYTES_MAX
from sealane.client.user_profiles import UserProfiles
from sealane.errors import InvalidArgument
from sealane.node.surroundings import of_this_machine
from sealane.security.credentials.key_text import ApiKeyText
from tests.certificates import TestAuthority

AUTHORITY = TestAuthority()
MINE = AUTHORITY.issue("anna")
KEY = ApiKeyText("a" * 12, bytes(32)).written()
URL = "sealanes://a:1"


@pytest.fixture(autouse=True)
def nothing_is_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in [name for name in os.environ if name.startswith("SEALANE_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)


def access(urls: str | None = URL, **options: Any) -> Access:
    return find_access(Given(urls, **options), of_this_machine())


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({}, NoCredentials),
        ({"key": KEY}, ApiKey),
        ({"token": "t"}, Token),
        ({"user": "anna", "password": "p"}, Password),
        ({"certificate": MINE.certificate, "certificate_key": MINE.key}, NoCredentials),
    ],
)
def test_each_credential_is_shown_as_what_it_is(options: dict[str, str], kind: type) -> None:
    found = access(**options)
    assert isinstance(found.credentials, kind)
    assert found.tls is not None
    assert found.tls.shows_certificate is ("certificate" in options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"key": KEY, "token": "t"}, "token: cannot be given beside key"),
        ({"user": "a", "password": "p", "token": "t"}, "token: cannot be given beside user"),
        ({"user": "a"}, "password: is missing"),
        ({"password": "p"}, "user: is missing"),
        ({"certificate_key": "x"}, "certificate: is missing"),
        ({"token": ""}, "token: must be a text"),
        ({"key": b"x"}, "key: must be a text"),
        ({"key": "S3CRET"}, "this is no API key"),
        ({"ca": 5}, "ca: must be a PEM text or the path of a file, not int"),
        ({"ca": "nowhere/ca.crt"}, "ca: 'nowhere/ca.crt' cannot be read: No such file"),
        ({"ca": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"}, "no certificate that can be read"),
        ({"certificate": MINE.certificate}, "private key"),
        ({"certificate": MINE.certificate, "certificate_key": AUTHORITY.issue("b").key}, "not the key of the"),
    ],
)
def test_what_does_not_go_together_is_refused(options: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        access(**options)
    assert told in str(refused.value)
    assert "S3CRET" not in str(refused.value)


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it() -> None:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    from tests.certificates import key_pem

    key = key_pem(load_pem_private_key(MINE.key.encode(), None), b"S3CRET")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="passphrase"):
        access(certificate=MINE.certificate, certificate_key=key)


@pytest.mark.parametrize(("size", "is_fine"), [(PEM_BYTES_MAX, True), (PEM_BYTES_MAX + 1, False)])
def test_a_file_that_is_too_long_to_be_a_certificate_is_refused(tmp_path: Path, size: int, is_fine: bool) -> None:
    path = tmp_path / "ca.crt"
    path.write_text(AUTHORITY.pem.ljust(size, "\n"))
    if is_fine:
        access(ca=path)
        return
    with pytest.raises(InvalidArgument, match="is no PEM file"):
        access(ca=path)


@pytest.mark.parametrize("options", [{"ca": AUTHORITY.pem}, {"certificate": MINE.certificate + MINE.key}])
def test_certificates_without_tls_are_refused_with_what_to_write(options: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="write sealanes://"):
        access("sealane://127.0.0.1:1", **options)


@pytest.mark.parametrize("options", [{"token": "S3CRET"}, {"user": "a", "password": "S3CRET"}])
def test_secrets_do_not_cross_a_network_in_plain_text(options: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument, match="plain text") as refused:
        access("sealane://127.0.0.1,broker.example", **options)
    assert "S3CRET" not in str(refused.value)
    access("sealane://127.0.0.1,localhost", **options)
    access("sealane://broker.example", key=KEY)  # Its secret is never sent.


def test_what_is_given_replaces_the_profiles_credentials_and_keeps_its_trust() -> None:
    profile = Profile(URL, ca=AUTHORITY.pem, certificate=MINE.certificate, key=MINE.key, name="mine")
    UserProfiles().put(profile)

    found = access()
    assert found.tls is not None
    assert found.tls.shows_certificate

    found = access(token="t")
    assert isinstance(found.credentials, Token)
    assert found.tls is not None
    assert found.tls.has_own_trust
    assert not found.tls.shows_certificate


def test_variables_come_between_what_is_given_and_what_a_profile_says(monkeypatch: pytest.MonkeyPatch) -> None:
    UserProfiles().put(Profile(URL, token="t", name="mine"))
    assert isinstance(access().credentials, Token)
    monkeypatch.setenv("SEALANE_API_KEY", KEY)
    assert isinstance(access().credentials, ApiKey)
    assert isinstance(access(profile="mine").credentials, Token)
    assert isinstance(access(user="a", password="p").credentials, Password)
    assert isinstance(access("sealane://127.0.0.1:1").credentials, NoCredentials), "not without TLS"

    monkeypatch.setenv("SEALANE_TOKEN", "t")
    with pytest.raises(InvalidArgument, match="SEALANE_TOKEN"):
        access()


def test_a_variable_tells_whom_to_trust(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(AUTHORITY.pem)
    monkeypatch.setenv("SEALANE_CA", str(tmp_path / "ca.crt"))
    found = access()
    assert found.tls is not None
    assert found.tls.has_own_trust


def test_nothing_that_is_shown_of_a_lane_has_a_secret_in_it() -> None:
    certificate = MINE.certificate + MINE.key
    lane = sealane.connect(URL, ca=AUTHORITY.pem, certificate=certificate, user="anna", password="S3CRET")
    with_token = sealane.connect(URL, token="S3CRET")
    with_key = sealane.connect(URL, key=KEY)
    for each in (lane, with_token, with_key, Given(URL, key=KEY), Given(URL, user="anna", password="S3CRET")):
        shown = repr(each) + (repr(vars(each)) if hasattr(each, "__dict__") else "")
        for secret in ("S3CRET", KEY, KEY.rpartition("_")[2], "PRIVATE"):
            assert secret not in shown
