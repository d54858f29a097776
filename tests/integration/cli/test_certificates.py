"""`sealane ca …` as a user types it, on a node that has just made its own authority, and on a directory without one."""

from __future__ import annotations

import asyncio
import json
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding

import sealane
from sealane.client.profiles import read_profile
from tests.integration.cli.shell import Shell
from tests.integration.server.up import Up

CUT_SECONDS = 5.0
"""Within which the connections of a revoked certificate are cut."""


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    with Up(tmp_path_factory.mktemp("node"), insecure=False) as node:
        yield node


@pytest.fixture(scope="module")
def shell(node: Up) -> Shell:
    return Shell(node.data)


async def keep_publishing(lane: sealane.Lane) -> None:
    while True:
        await lane.publish("orders", b"again")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_an_issued_certificate_comes_as_three_files_of_which_the_key_is_its_owners_alone(
    shell: Shell, tmp_path: Path
) -> None:
    told = shell.json("ca", "issue", "client001.example.com", "--out", str(tmp_path / "new"), "--json")
    files = {name: Path(path) for name, path in told["files"].items()}
    assert {path.name for path in files.values()} == {
        "client001.example.com.crt",
        "client001.example.com.key",
        "ca.crt",
    }
    assert mode(files["key"]) == 0o600
    assert mode(tmp_path / "new") == 0o700
    certificate = x509.load_pem_x509_certificate(files["certificate"].read_bytes())
    assert certificate.fingerprint(hashes.SHA256()).hex() == told["fingerprint"]
    assert "PRIVATE" not in json.dumps(told)


async def test_whoever_has_the_files_comes_in_by_them(shell: Shell, node: Up, tmp_path: Path) -> None:
    await asyncio.to_thread(shell.text, "ca", "issue", "client002.example.com", "--out", str(tmp_path))
    async with sealane.connect(
        f"sealanes://{node.ready['doors']['native']}",
        ca=str(tmp_path / "ca.crt"),
        certificate=str(tmp_path / "client002.example.com.crt"),
        certificate_key=str(tmp_path / "client002.example.com.key"),
    ) as lane:
        assert (await lane.publish("orders", b"hello")).offset == 0
        assert await lane.topics() == ["example.com/orders"]


async def test_a_revocation_cuts_a_connection_within_seconds_and_lets_nobody_in_again(
    shell: Shell, node: Up, tmp_path: Path
) -> None:
    profile = tmp_path / "laptop.profile"
    await asyncio.to_thread(shell.text, "ca", "issue", "laptop", "--profile-file", str(profile))
    assert mode(profile) == 0o600
    async with sealane.connect(profile=profile) as lane:
        await lane.publish("orders", b"hello")
        revoked = await asyncio.to_thread(shell.json, "ca", "revoke", "laptop", "--yes", "--json")
        assert [each["state"] for each in revoked] == ["revoked"]
        with pytest.raises(sealane.Unauthenticated):
            await asyncio.wait_for(keep_publishing(lane), CUT_SECONDS)
    with pytest.raises(sealane.Unauthenticated, match="revoked"):
        async with sealane.connect(profile=profile) as lane:
            await lane.publish("orders", b"again")
    written = x509.load_pem_x509_crl((node.data / "identity" / "ca.crl").read_bytes())
    assert written.get_revoked_certificate_by_serial_number(int(revoked[0]["serial"], 16)) is not None


def test_files_that_are_there_are_not_written_over_and_nothing_is_issued_then(shell: Shell, tmp_path: Path) -> None:
    issue = ("ca", "issue", "careful", "--out", str(tmp_path))
    shell.text(*issue)
    before = (tmp_path / "careful.key").read_bytes()
    refused = shell.run(*issue)
    assert refused.returncode == 1
    assert b"--force" in refused.stderr
    assert (tmp_path / "careful.key").read_bytes() == before
    assert len(shell.json("ca", "list", "--name", "careful", "--json")) == 1
    shell.text(*issue, "--force")
    assert (tmp_path / "careful.key").read_bytes() != before
    assert mode(tmp_path / "careful.key") == 0o600


def test_a_key_is_never_written_through_a_link(shell: Shell, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / "linked.key").symlink_to(elsewhere)
    assert shell.run("ca", "issue", "linked", "--out", str(tmp_path)).returncode == 1
    shell.text("ca", "issue", "linked", "--out", str(tmp_path), "--force")
    assert not elsewhere.exists()
    assert not (tmp_path / "linked.key").is_symlink()


def test_a_request_is_signed_and_no_key_is_written(shell: Shell, tmp_path: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(key, hashes.SHA256())
    csr = tmp_path / "mine.csr"
    csr.write_bytes(request.public_bytes(Encoding.PEM))
    shell.text("ca", "issue", "mine", "--csr", str(csr), "--out", str(tmp_path), "--days", "0.5")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ca.crt", "mine.crt", "mine.csr"]
    assert x509.load_pem_x509_certificate((tmp_path / "mine.crt").read_bytes()).public_key() == key.public_key()


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", ".hidden", ""])
def test_a_name_that_is_a_path_writes_nothing(shell: Shell, tmp_path: Path, name: str) -> None:
    refused = shell.run("ca", "issue", name, "--out", str(tmp_path / "deep" / "er"))
    assert refused.returncode == 2
    assert not (tmp_path / "deep").exists()


def test_a_certificate_is_renewed_shown_and_listed(shell: Shell, tmp_path: Path) -> None:
    out = ("--out", str(tmp_path))
    old = shell.json("ca", "issue", "renewed", *out, "--days", "10", "--json")
    assert "renewed" in shell.text("ca", "expiring")
    new = shell.json("ca", "renew", "renewed", *out, "--force", "--json")
    early = shell.run("ca", "renew", "renewed", "--days", "365", *out, "--force")
    assert early.returncode == 0, "ten days are soon"
    too_early = shell.run("ca", "renew", "renewed", *out, "--force")
    assert too_early.returncode == 1
    assert b"--early" in too_early.stderr
    shown = {each["serial"]: each for each in shell.json("ca", "show", "renewed", "--json")}
    assert shown[old["serial"]]["replaced_by"] == new["serial"]
    assert shown[old["serial"]]["not_after"] == old["not_after"]
    assert old["serial"] in shell.text("ca", "show", old["serial"])
    assert [each["state"] for each in shell.json("ca", "list", "--name", "renewed", "--json")] == ["valid"] * 3


def test_the_authority_and_its_list_are_shown_in_pem(shell: Shell, node: Up) -> None:
    assert shell.text("ca", "show", "--pem") == (node.data / "identity" / "ca.crt").read_text()
    assert x509.load_pem_x509_crl(shell.text("ca", "crl").encode()).next_update_utc is not None
    assert "root" in shell.text("ca", "show")


def test_a_second_root_is_refused(shell: Shell) -> None:
    refused = shell.run("ca", "init")
    assert refused.returncode == 1
    assert b"already exists" in refused.stderr


def test_a_domain_gets_an_authority_of_its_own(shell: Shell, tmp_path: Path) -> None:
    assert shell.json("ca", "init", "--domain", "shop", "--json")["name"] == "domain:shop"
    shell.text("ca", "issue", "client001.shop", "--out", str(tmp_path))
    assert shell.json("ca", "list", "--domain", "shop", "--json")[0]["authority"] == "domain:shop"
    assert "BEGIN X509 CRL" in shell.text("ca", "crl", "--domain", "shop")


def test_revoking_needs_a_yes_where_nobody_can_be_asked(shell: Shell, tmp_path: Path) -> None:
    shell.text("ca", "issue", "asked", "--out", str(tmp_path))
    refused = shell.run("ca", "revoke", "asked")
    assert refused.returncode == 2
    assert b"--yes" in refused.stderr
    assert shell.json("ca", "list", "--name", "asked", "--json")[0]["state"] == "valid"


def test_without_a_node_the_data_directory_is_opened(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")
    shell.text("ca", "init")
    shell.text("ca", "issue", "early", "--out", str(tmp_path))
    assert [each["name"] for each in shell.json("ca", "list", "--json")] == ["early"]


def test_a_profile_for_a_node_that_does_not_run_needs_to_be_told_where_it_will_be(tmp_path: Path) -> None:
    shell = Shell(tmp_path / "data")
    shell.text("ca", "init")
    issue = ("ca", "issue", "laptop", "--profile-file", str(tmp_path / "laptop.profile"))
    refused = shell.run(*issue)
    assert refused.returncode == 2
    assert b"--profile-url" in refused.stderr
    shell.text(*issue, "--profile-url", "sealanes://10.0.0.5:7070")
    assert read_profile(tmp_path / "laptop.profile").url == "sealanes://10.0.0.5:7070"
