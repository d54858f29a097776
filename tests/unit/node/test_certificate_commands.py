"""The commands of the certificate authority: who may give them, what they do, what is written down of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

import sealane
from sealane.client.embedded import in_process
from sealane.engine.memory import MemoryEngine
from sealane.errors import CertificateNotFound, Unauthenticated
from sealane.node import Node
from sealane.node.administration.authority import LISTED_MAX
from sealane.node.certificate_watch import WARNED_MAX
from sealane.node.identity_files import write_crl
from sealane.node.session import Session
from sealane.node.surroundings import of_this_machine
from sealane.security.grants.grants import Grant
from sealane.security.principals import Principal
from tests.unit.node.running_node import Running, running_node

DAY_SECONDS = 24 * 3600


def der(issued: dict[str, Any]) -> bytes:
    return x509.load_pem_x509_certificate(issued["certificate"].encode()).public_bytes(Encoding.DER)


async def domain_admin(running: Running) -> Session:
    """Someone who administers the domain `shop`, and nothing else."""
    await running.node.identity.accounts.ensure("chief", domain="shop", roles=["member"])
    await running.node.identity.grants.add(Grant("chief", "admin", "shop/*"))
    return Session(running.node, Principal("chief", "shop", frozenset({"member"})))


async def test_a_certificate_is_issued_renewed_shown_and_revoked_by_commands() -> None:
    async with running_node() as running:
        lane = running.lane
        root = await lane.administer("ca.init")
        assert root["name"] == "root"
        assert "key" not in root

        issued = await lane.administer("ca.issue", name="client001.example.com", days=7)
        assert issued["key"].startswith("-----BEGIN PRIVATE KEY-----")
        renewed = await lane.administer("ca.renew", certificate="client001.example.com")
        shown = {each["serial"]: each for each in await lane.administer("ca.show", certificate="client001.example.com")}
        assert shown[issued["serial"]]["replaced_by"] == renewed["serial"]
        assert [each["serial"] for each in await lane.administer("ca.expiring")] == [renewed["serial"]]

        revoked = await lane.administer("ca.revoke", certificate=renewed["serial"], reason="superseded")
        assert [(each["serial"], each["state"]) for each in revoked] == [(renewed["serial"], "revoked")]
        listed = await lane.administer("ca.list", state="valid")
        assert [each["serial"] for each in listed["certificates"]] == [issued["serial"]]
        crl = x509.load_pem_x509_crl((await lane.administer("ca.crl")).encode())
        assert [each.serial_number for each in crl] == [int(renewed["serial"], 16)]
        assert [each["name"] for each in await lane.administer("ca.show")] == ["root"]


async def test_whoever_is_inside_by_a_revoked_certificate_is_shown_out_at_once() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        issued = [await running.lane.administer("ca.issue", name=name) for name in ("anna", "anna", "bert")]
        shown_out: list[str] = []

        def come_in(each: dict[str, Any]) -> None:
            principal = running.node.identity.authorities.principal(der(each))
            running.node.entrances.came(principal, "10.0.0.1", lambda _: shown_out.append(each["serial"]))

        for each in issued:
            come_in(each)
        first, second, _ = (each["serial"] for each in issued)

        await running.lane.administer("ca.revoke", certificate=first)
        assert shown_out == [first]
        await running.lane.administer("ca.revoke", certificate="anna")
        assert shown_out == [first, second]


async def test_a_session_by_a_revoked_certificate_is_refused_with_its_next_request() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        issued = await running.lane.administer("ca.issue", name="anna")
        session = Session(running.node, running.node.identity.authorities.principal(der(issued)))
        session.authorise("publish", "default/orders")
        await running.lane.administer("ca.revoke", certificate="anna")
        with pytest.raises(Unauthenticated):
            session.authorise("publish", "default/orders")


async def test_whoever_administers_nothing_is_refused_every_command() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        issued = await running.lane.administer("ca.issue", name="anna")
        session = Session(running.node, running.node.identity.authorities.principal(der(issued)))
        asked: dict[str, dict[str, Any]] = {
            "ca.init": {"domain": "default"},
            "ca.issue": {"name": "bert"},
            "ca.renew": {"certificate": "anna"},
            "ca.revoke": {"certificate": "anna"},
            "ca.list": {},
            "ca.show": {"certificate": "nobody"},
            "ca.crl": {},
            "ca.expiring": {"domain": "default"},
        }
        for command, arguments in asked.items():
            with pytest.raises(sealane.Forbidden):
                await session.administer(command, arguments)


async def test_whoever_administers_a_domain_deals_with_its_certificates() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        chief = await domain_admin(running)
        issued = await chief.administer("ca.issue", {"name": "client001.shop", "days": 7})
        assert (await chief.administer("ca.renew", {"certificate": issued["serial"]}))["name"] == "client001.shop"
        assert len((await chief.administer("ca.list", {"domain": "shop"}))["certificates"]) == 2
        assert len(await chief.administer("ca.revoke", {"certificate": "client001.shop"})) == 2


async def test_whoever_administers_a_domain_is_refused_what_is_beyond_it() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        await running.lane.administer("ca.issue", name="client001.bank")
        await running.lane.administer("ca.issue", name="node", usage="server")
        chief = await domain_admin(running)
        refused: list[tuple[str, dict[str, Any]]] = [
            ("ca.init", {"domain": "shop"}),
            ("ca.issue", {"name": "client002.bank"}),
            ("ca.issue", {"name": "client002"}),
            ("ca.issue", {"name": "node.shop", "usage": "server"}),
            ("ca.renew", {"certificate": "client001.bank"}),
            ("ca.revoke", {"certificate": "client001.bank"}),
            ("ca.revoke", {"certificate": "node"}),
            ("ca.list", {}),
            ("ca.list", {"domain": "bank"}),
            ("ca.show", {}),
        ]
        for command, arguments in refused:
            with pytest.raises(sealane.Forbidden):
                await chief.administer(command, arguments)


async def test_whoever_administers_a_domain_cannot_tell_what_exists_beyond_it() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        await running.lane.administer("ca.issue", name="client001.bank")
        chief = await domain_admin(running)
        texts = set()
        for reference in ("client001.bank", "nobody.bank"):
            with pytest.raises(sealane.Forbidden) as refused:
                await chief.administer("ca.show", {"certificate": reference})
            texts.add(str(refused.value))
        assert len(texts) == 1


@pytest.mark.parametrize("roles", [["admin"], ["member", "admin"]])
async def test_an_administrators_certificate_is_for_who_administers_the_node_to_issue_and_revoke(
    roles: list[str],
) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        chief = await domain_admin(running)
        with pytest.raises(sealane.Forbidden):
            await chief.administer("ca.issue", {"name": "mole.shop", "roles": roles})
        await running.lane.administer("ca.issue", name="boss.shop", roles=roles, days=7)
        refused = {"ca.issue": {"name": "boss.shop"}, "ca.renew": {"certificate": "boss.shop"}}
        for command, arguments in {**refused, "ca.revoke": {"certificate": "boss.shop"}}.items():
            with pytest.raises(sealane.Forbidden):
                await chief.administer(command, arguments)
        assert (await chief.administer("ca.show", {"certificate": "boss.shop"}))[0]["state"] == "valid"


async def test_a_certificate_for_an_account_with_grants_elsewhere_is_refused_to_its_domains_administrator() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        chief = await domain_admin(running)
        await running.node.identity.grants.add(Grant("courier.shop", "publish", "bank/transfers"))
        with pytest.raises(sealane.Forbidden):
            await chief.administer("ca.issue", {"name": "courier.shop"})


@pytest.mark.parametrize("name", ["../../etc/x", "a/b", "", "x" * 200])
async def test_a_name_that_is_a_path_is_refused_by_the_command(name: str) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        with pytest.raises(sealane.InvalidName):
            await running.lane.administer("ca.issue", name=name)


async def test_what_is_not_there_is_not_found() -> None:
    async with running_node() as running:
        with pytest.raises(sealane.NotFound, match="sealane ca init"):
            await running.lane.administer("ca.issue", name="anna")
        with pytest.raises(CertificateNotFound):
            await running.lane.administer("ca.revoke", certificate="anna")
        with pytest.raises(sealane.InvalidArgument):
            await running.lane.administer("ca.revoke", certificate="anna", reason="no such reason")


async def test_a_long_list_comes_in_pages() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        issued = await running.lane.administer("ca.issue", name="anna")
        ledger = running.node.identity.authorities.ledger
        record = ledger.find(issued["serial"])[0]
        for number in range(LISTED_MAX):
            await ledger.put(_another(record, number))
        first = await running.lane.administer("ca.list")
        second = await running.lane.administer("ca.list", after=first["next"])
        assert (len(first["certificates"]), len(second["certificates"])) == (LISTED_MAX, 1)
        assert second["next"] is None
        assert first["next"] < second["certificates"][0]["serial"]


def _another(record: Any, number: int) -> Any:
    return msgspec.structs.replace(record, serial=f"{number:040x}", fingerprint=f"{number:064x}")


async def test_the_audit_log_has_who_issued_and_revoked_what_and_no_key() -> None:
    surroundings = of_this_machine()
    node = await Node.open(MemoryEngine(surroundings.clock), surroundings, audited=True)
    async with in_process(node) as lane:
        await lane.administer("ca.init")
        issued = await lane.administer("ca.issue", name="anna", days=1)
        renewed = await lane.administer("ca.renew", certificate="anna")
        await lane.administer("ca.revoke", certificate=renewed["serial"], reason="key-compromise")
        entries = (await lane.administer("audit.read", event="ca"))["entries"]
    await node.close()

    assert [each["event"] for each in entries] == ["ca.init", "ca.issue", "ca.renew", "ca.revoke"]
    assert all(each["principal"] == "admin" for each in entries)
    assert entries[1]["resource"] == "anna"
    assert issued["serial"] in str(entries[1])
    assert issued["serial"] in str(entries[2]), "what it replaces"
    assert renewed["serial"] in str(entries[3])
    assert "PRIVATE" not in str(entries)


# --- each day ---------------------------------------------------------------------------------------------------------


async def test_thirty_days_ahead_a_warning_is_logged_once_a_day(caplog: pytest.LogCaptureFixture) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        await running.lane.administer("ca.issue", name="anna")
        await running.lane.administer("ca.issue", name="daily", days=2)
        watch = running.node.certificates

        def warned() -> list[str]:
            return [text for text in caplog.messages if "a certificate ends soon" in text]

        running.clock.pass_seconds(334 * DAY_SECONDS)
        await watch.look()
        assert warned() == []
        running.clock.pass_seconds(DAY_SECONDS)
        await watch.look()
        await watch.look()
        assert len(warned()) == 1
        assert "name=anna" in warned()[0]
        running.clock.pass_seconds(DAY_SECONDS)
        await watch.look()
        assert len(warned()) == 2


async def test_a_short_lived_certificate_is_no_news_until_most_of_its_time_is_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        await running.lane.administer("ca.issue", name="weekly", days=7)
        running.clock.pass_seconds(DAY_SECONDS)
        await running.node.certificates.look()
        assert not any("ends soon" in text for text in caplog.messages)
        running.clock.pass_seconds(4 * DAY_SECONDS)
        await running.node.certificates.look()
        assert any("ends soon" in text for text in caplog.messages)


async def test_one_days_warnings_name_so_many_and_count_the_rest(caplog: pytest.LogCaptureFixture) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        for number in range(WARNED_MAX):
            await running.lane.administer("ca.issue", name=f"client{number}", days=40)
        running.clock.pass_seconds(20 * DAY_SECONDS)
        await running.node.certificates.look()
        assert sum("a certificate ends soon" in text for text in caplog.messages) == WARNED_MAX
        assert not any("more certificates end soon" in text for text in caplog.messages)
        caplog.clear()

        await running.lane.administer("ca.issue", name="one-more", days=31)
        running.clock.pass_seconds(2 * DAY_SECONDS)
        await running.node.certificates.look()
        assert sum("a certificate ends soon" in text for text in caplog.messages) == WARNED_MAX
        assert any("more certificates end soon" in text and "count=1" in text for text in caplog.messages)


async def test_an_authority_that_ends_soon_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        running.clock.pass_seconds(3_625 * DAY_SECONDS)
        await running.node.certificates.look()
        assert any("a certificate authority ends soon authority=root" in text for text in caplog.messages)


async def test_what_depends_on_the_day_is_made_anew_each_day(tmp_path: Path) -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        authorities = running.node.identity.authorities

        def write() -> None:
            write_crl(tmp_path, authorities.crls())

        authorities.changed.append(write)
        running.clock.pass_seconds(DAY_SECONDS)
        await running.node.certificates.look()
        first = x509.load_pem_x509_crl((tmp_path / "identity" / "ca.crl").read_bytes())
        running.clock.pass_seconds(DAY_SECONDS)
        await running.node.certificates.look()
        second = x509.load_pem_x509_crl((tmp_path / "identity" / "ca.crl").read_bytes())
        assert first.next_update_utc is not None
        assert second.next_update_utc is not None
        assert first.next_update_utc < second.next_update_utc
        assert [each.name for each in (tmp_path / "identity").iterdir()] == ["ca.crl"]


async def test_a_listener_that_fails_does_not_keep_a_revocation_from_holding() -> None:
    async with running_node() as running:
        await running.lane.administer("ca.init")
        issued = await running.lane.administer("ca.issue", name="anna")

        def fail() -> None:
            raise OSError("the disk is full")

        running.node.identity.authorities.changed.append(fail)
        await running.lane.administer("ca.revoke", certificate="anna")
        assert running.node.identity.authorities.is_revoked(f"certificate:{issued['serial']}")
