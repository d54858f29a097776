"""The node's own identity: made once, kept valid, made anew when it will not do."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from cryptography import x509

from sealane.client.profiles import read_profile, write_profile
from sealane.engine.memory import MemoryEngine
from sealane.errors import InvalidArgument
from sealane.node import Node
from sealane.node.surroundings import Surroundings, wall_clock_us
from sealane.server.identity_files import IdentityFiles
from sealane.server.own_identity import OwnIdentity, names_of

DAY_US = 24 * 3600 * 1_000_000
URL = "sealanes://127.0.0.1:7070"


class Home:
    """A node, its clock, and the directory of its identity."""

    def __init__(self, directory: Path) -> None:
        self.files = IdentityFiles(directory)
        self.files.make_private()
        self.passed_us = 0
        self.node: Node

    def clock(self) -> int:
        return wall_clock_us() + self.passed_us

    async def start(self, *names: str) -> OwnIdentity:
        """As at a start of the node."""
        own = OwnIdentity(self.node.identity, self.files, names)
        await own.ensure()
        own.announce(URL)
        return own

    @property
    def certificate(self) -> x509.Certificate:
        return x509.load_pem_x509_certificate(self.files.server_certificate.read_bytes())

    @property
    def admin(self) -> str:
        return read_profile(self.files.admin_profile).certificate or ""


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    made = Home(tmp_path / "data")
    made.node = await Node.open(MemoryEngine(made.clock), Surroundings(made.clock, os.urandom))
    yield made
    await made.node.close()


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def test_secrets_are_for_their_owner_alone(home: Home) -> None:
    await home.start()

    assert mode(home.files.data) == 0o700
    assert mode(home.files.ca.parent) == 0o700
    assert mode(home.files.server_key) == 0o600
    assert mode(home.files.admin_profile) == 0o600
    assert mode(home.files.ca) == 0o644


async def test_the_admin_is_an_admin_and_the_profile_leads_to_the_node(home: Home) -> None:
    own = await home.start()
    profile = read_profile(home.files.admin_profile)

    assert (profile.url, profile.name) == (URL, "admin")
    assert profile.ca == home.files.ca.read_text()
    assert home.node.identity.accounts.get("admin").roles == {"admin"}
    assert own.is_new


async def test_the_certificate_is_for_every_name_of_the_node(home: Home) -> None:
    await home.start("broker.example.com", "10.0.0.7")
    names = home.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert {"localhost", "broker.example.com"} <= set(names.get_values_for_type(x509.DNSName))
    assert ipaddress.ip_address("10.0.0.7") in names.get_values_for_type(x509.IPAddress)
    assert ipaddress.ip_address("::1") in names.get_values_for_type(x509.IPAddress)


async def test_the_next_start_finds_all_of_it(home: Home) -> None:
    await home.start()
    before = [path.read_bytes() for path in (home.files.ca, home.files.server_certificate, home.files.server_key)]
    admin = home.admin
    own = await home.start()

    assert before == [
        path.read_bytes() for path in (home.files.ca, home.files.server_certificate, home.files.server_key)
    ]
    assert home.admin == admin
    assert not own.is_new


@pytest.mark.parametrize("missing", ["server_key", "server_certificate", "ca"])
async def test_what_is_missing_is_made_anew(home: Home, missing: str) -> None:
    await home.start()
    serial = home.certificate.serial_number
    getattr(home.files, missing).unlink()
    own = await home.start()

    assert home.certificate.serial_number != serial
    assert own.tls.context is not None


async def test_files_that_do_not_belong_together_are_made_anew(home: Home) -> None:
    await home.start()
    certificate = home.files.server_certificate.read_bytes()
    home.files.server_key.unlink()
    await home.start()
    home.files.server_certificate.write_bytes(certificate)
    await home.start()

    assert home.files.tls() is not None
    assert home.files.server_certificate.read_bytes() != certificate


async def test_a_new_name_needs_a_new_certificate(home: Home) -> None:
    await home.start()
    serial = home.certificate.serial_number
    await home.start("broker.example.com")

    assert home.certificate.serial_number != serial


async def test_it_is_renewed_a_month_before_it_ends_and_not_before_that(home: Home) -> None:
    own = await home.start()
    serial, admin = home.certificate.serial_number, home.admin
    shown = own.tls.context

    home.passed_us = 334 * DAY_US
    await own.ensure()
    assert (home.certificate.serial_number, home.admin) == (serial, admin)
    assert own.tls.context is shown

    home.passed_us = 336 * DAY_US
    await own.ensure()
    assert home.certificate.serial_number != serial
    assert home.admin != admin
    assert own.tls.context is not shown
    assert read_profile(home.files.admin_profile).url == URL


async def test_a_certificate_of_the_node_that_was_revoked_is_replaced(home: Home) -> None:
    own = await home.start()
    serial = home.certificate.serial_number
    await home.node.identity.authorities.revoke("localhost", "key-compromise")
    await own.ensure()

    assert home.certificate.serial_number != serial


async def test_an_admin_whose_certificate_was_revoked_gets_another(home: Home) -> None:
    own = await home.start()
    admin = home.admin
    await home.node.identity.authorities.revoke("admin", "key-compromise")
    await own.ensure()

    assert home.admin != admin


async def test_an_admin_who_was_disabled_stays_so(home: Home) -> None:
    own = await home.start()
    admin = home.admin
    await home.node.identity.accounts.change("admin", disabled=True)
    home.passed_us = 400 * DAY_US
    await own.ensure()

    assert home.admin == admin


async def test_a_profile_that_others_could_read_is_not_trusted_any_more(home: Home) -> None:
    await home.start()
    admin = home.admin
    home.files.admin_profile.chmod(0o644)
    await home.start()

    assert mode(home.files.admin_profile) == 0o600
    assert home.admin != admin


async def test_a_profile_of_another_node_is_made_anew(home: Home) -> None:
    await home.start()
    profile = read_profile(home.files.admin_profile)
    write_profile(home.files.admin_profile, msgspec.structs.replace(profile, ca="another authority"))
    await home.start()

    assert read_profile(home.files.admin_profile).ca == profile.ca


async def test_what_was_revoked_is_in_a_file_for_others(home: Home) -> None:
    own = await home.start()
    issued = await home.node.identity.authorities.issue("anna")
    await home.node.identity.authorities.revoke("anna", "key-compromise")
    listed = x509.load_pem_x509_crl((home.files.ca.parent / "ca.crl").read_bytes())

    assert listed.get_revoked_certificate_by_serial_number(int(issued.serial, 16)) is not None
    assert own.fingerprint == home.node.identity.authorities.info().fingerprint


def test_names_are_of_hosts_that_clients_can_be_sent_to() -> None:
    names = names_of(["0.0.0.0", "::", "10.0.0.7"], " broker.example.com ,,*.example.com")

    assert {"10.0.0.7", "broker.example.com", "*.example.com"} <= set(names)
    assert {"0.0.0.0", "::", ""}.isdisjoint(names)


def test_refused_a_name_that_is_none() -> None:
    with pytest.raises(InvalidArgument, match=r"security\.certificates\.names"):
        names_of([], "two words")
