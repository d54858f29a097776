"""The life of certificates: issued, renewed with overlap, revoked for good, remembered over a restart."""

from __future__ import annotations

import asyncio

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

import sealane
from sealane.errors import AccountNotFound, AuthorityNotFound, CertificateNotFound, RenewalTooEarly, Unauthenticated
from sealane.security.ca.ledger import KEPT_US
from tests.unit.security.ca.small_authority import DAY_US, der, office, parsed, pem, request


async def test_an_account_is_made_with_its_first_certificate() -> None:
    at = await office()
    issued = await at.authorities.issue("client001.example.com", roles=["producer"])
    account = at.accounts.get("client001.example.com")
    assert (account.domain, account.roles) == ("example.com", frozenset({"producer"}))
    principal = at.authorities.principal(der(issued))
    assert principal.kind == "certificate"
    assert principal.credential == f"certificate:{issued.serial}"
    assert principal.expires_us == issued.not_after_us


async def test_everything_is_there_after_a_restart() -> None:
    at = await office()
    kept, revoked = await at.authorities.issue("anna"), await at.authorities.issue("bert")
    await at.authorities.revoke("bert")

    again = await at.reopened()

    assert again.authorities.ready
    assert again.authorities.trusted() == at.authorities.trusted()
    assert again.authorities.principal(der(kept)).name == "anna"
    assert again.authorities.is_revoked(f"certificate:{revoked.serial}")
    with pytest.raises(Unauthenticated, match="was revoked"):
        again.authorities.principal(der(revoked))


async def test_a_domain_with_an_authority_of_its_own_is_signed_for_by_that() -> None:
    at = await office()
    before = await at.authorities.issue("client001.example.com")
    info = await at.authorities.init(domain="example.com")
    after, elsewhere = await at.authorities.issue("client002.example.com"), await at.authorities.issue("anna")

    own = x509.load_pem_x509_certificate(info.certificate.encode())
    assert parsed(after).issuer == own.subject
    assert parsed(elsewhere).issuer != own.subject
    assert after.ca == elsewhere.ca, "both know the node by its root"
    assert at.authorities.trusted().count("BEGIN CERTIFICATE") == 2
    assert at.authorities.principal(der(before)).domain == at.authorities.principal(der(after)).domain == "example.com"


async def test_a_domain_may_be_called_root() -> None:
    at = await office()
    info = await at.authorities.init(domain="root")
    assert (info.name, at.authorities.info().name) == ("domain:root", "root")


async def test_of_two_who_make_the_root_at_once_one_is_refused() -> None:
    at = await office()
    made = await asyncio.gather(*(at.authorities.init(domain="shop") for _ in range(2)), return_exceptions=True)
    assert sorted(type(each).__name__ for each in made) == ["AlreadyExists", "AuthorityInfo"]


async def test_a_second_root_is_refused() -> None:
    at = await office()
    with pytest.raises(sealane.AlreadyExists, match="authority 'root' already exists"):
        await at.authorities.init()


async def test_nothing_is_issued_before_there_is_an_authority() -> None:
    at = await office()
    with pytest.raises(AuthorityNotFound, match="sealane ca init --domain shop"):
        at.authorities.crl("shop")


# --- renewing ---------------------------------------------------------------------------------------------------------


async def test_a_renewed_certificate_and_the_old_one_are_valid_side_by_side() -> None:
    at = await office()
    old = await at.authorities.issue("anna")
    at.clock.pass_days(340)
    new = await at.authorities.renew("anna")

    assert new.serial != old.serial
    assert new.not_after_us - old.not_after_us == 340 * DAY_US
    assert at.authorities.principal(der(old)).name == at.authorities.principal(der(new)).name == "anna"
    assert at.authorities.ledger.find(old.serial)[0].replaced_by == new.serial
    at.clock.pass_days(26)
    with pytest.raises(Unauthenticated, match="expired"):
        at.authorities.principal(der(old))
    assert at.authorities.principal(der(new)).name == "anna"


async def test_renewing_too_early_is_refused_unless_it_is_forced() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    at.clock.pass_days(334.9)
    with pytest.raises(RenewalTooEarly, match="can be renewed from") as refused:
        await at.authorities.renew("anna")
    assert (refused.value.name, refused.value.serial) == ("anna", issued.serial)
    await at.authorities.renew(issued.serial, force=True)


async def test_from_thirty_days_before_its_end_a_certificate_can_be_renewed() -> None:
    at = await office()
    await at.authorities.issue("anna")
    at.clock.pass_days(335)
    await at.authorities.renew("anna")


async def test_the_old_certificate_ends_at_once_if_that_is_wanted() -> None:
    at = await office()
    old = await at.authorities.issue("anna", days=10)
    new = await at.authorities.renew("anna", revoke=True)
    with pytest.raises(Unauthenticated, match="was revoked"):
        at.authorities.principal(der(old))
    assert at.authorities.principal(der(new)).name == "anna"


async def test_a_short_lived_certificate_is_renewed_for_as_long_as_it_was_for() -> None:
    at = await office()
    await at.authorities.issue("anna", days=0.25)
    new = await at.authorities.renew("anna")
    assert new.not_after_us == at.clock.now_us + DAY_US // 4


async def test_a_renewal_takes_a_request_too() -> None:
    at = await office()
    await at.authorities.issue("anna", days=1)
    key = ec.generate_private_key(ec.SECP256R1())
    new = await at.authorities.renew("anna", csr=pem(request(key)))
    assert new.key is None
    assert parsed(new).public_key() == key.public_key()


async def test_renewing_what_is_revoked_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna", days=1)
    await at.authorities.revoke("anna")
    for reference in ("anna", issued.serial):
        with pytest.raises(sealane.InvalidArgument, match="is revoked"):
            await at.authorities.renew(reference)


async def test_renewing_for_an_account_that_was_removed_is_refused() -> None:
    at = await office()
    await at.authorities.issue("anna", days=1)
    await at.accounts.remove("anna")
    with pytest.raises(AccountNotFound):
        await at.authorities.renew("anna")
    assert at.accounts.find("anna") is None


async def test_renewing_twice_is_refused() -> None:
    at = await office()
    old = await at.authorities.issue("anna", days=1)
    await at.authorities.renew(old.serial)
    with pytest.raises(sealane.InvalidArgument, match="was renewed before"):
        await at.authorities.renew(old.serial)


async def test_a_revocation_while_a_renewal_is_signed_is_not_undone_by_it() -> None:
    at = await office()
    old = await at.authorities.issue("anna", days=1)
    renewed, _ = await asyncio.gather(
        at.authorities.renew("anna"), at.authorities.revoke("anna"), return_exceptions=True
    )
    assert isinstance(renewed, sealane.InvalidArgument)
    assert at.authorities.is_revoked(f"certificate:{old.serial}")
    assert len(at.authorities.ledger.of("anna")) == 1


async def test_a_name_with_several_certificates_is_renewed_by_serial() -> None:
    at = await office()
    first = await at.authorities.issue("anna", days=1)
    await at.authorities.issue("anna", days=1)
    with pytest.raises(sealane.InvalidArgument, match=f"say which by its serial: .*{first.serial}"):
        await at.authorities.renew("anna")
    assert (await at.authorities.renew(first.serial)).name == "anna"


async def test_a_servers_newest_certificate_replaces_those_before_it() -> None:
    at = await office()
    told: list[str] = []
    at.authorities.changed.append(lambda: told.append("changed"))
    first = await at.authorities.issue("node", usage="server", names=["10.0.0.1"])
    second = await at.authorities.renew(first.serial, force=True)
    assert [each.serial for each in at.authorities.unrenewed()] == [second.serial]
    assert at.authorities.ledger.find(second.serial)[0].names == ("10.0.0.1",)
    assert told == ["changed"] * 2


async def test_a_certificate_in_the_place_of_another_one_leaves_nothing_to_renew() -> None:
    at = await office()
    old, other = await at.authorities.issue("anna", days=10), await at.authorities.issue("bert", days=10)
    new = await at.authorities.issue("anna", replaces=old.certificate)
    await at.authorities.issue("carl", replaces=other.certificate)
    await at.authorities.issue("carl", replaces="no certificate")
    assert at.authorities.ledger.find(old.serial)[0].replaced_by == new.serial
    assert [each.name for each in at.authorities.expiring(30)] == ["bert"], "nobody replaces what is another one's"


async def test_what_ends_soon_is_listed_unless_it_was_renewed() -> None:
    at = await office()
    await at.authorities.issue("anna", days=20)
    await at.authorities.issue("bert", days=10)
    await at.authorities.issue("carl", days=40)
    await at.authorities.renew("anna", days=365)
    assert [each.name for each in at.authorities.expiring(30)] == ["bert"]
    assert [each.name for each in at.authorities.expiring(40)] == ["bert", "carl"]


# --- revoking ---------------------------------------------------------------------------------------------------------


async def test_revoking_by_serial_or_fingerprint_leaves_the_others_of_that_name() -> None:
    at = await office()
    one, two, three = [await at.authorities.issue("anna") for _ in range(3)]
    assert await at.authorities.revoke(one.serial.upper()) == [one.serial]
    colons = ":".join(two.fingerprint[at : at + 2] for at in range(0, 64, 2))
    assert await at.authorities.revoke(colons) == [two.serial]
    assert at.authorities.principal(der(three)).name == "anna"


async def test_revoking_by_name_takes_all_that_are_valid() -> None:
    at = await office()
    expired = await at.authorities.issue("anna", days=1)
    at.clock.pass_days(2)
    valid = [(await at.authorities.issue("anna")).serial for _ in range(2)]
    assert sorted(await at.authorities.revoke("anna", "privilege-withdrawn")) == sorted(valid)
    assert not at.authorities.is_revoked(f"certificate:{expired.serial}")


async def test_revoking_again_changes_nothing() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    await at.authorities.revoke("anna", "key-compromise")
    before = at.authorities.ledger.find("anna")
    at.clock.pass_days(1)
    assert await at.authorities.revoke(issued.serial, "superseded") == [issued.serial]
    assert at.authorities.ledger.find("anna") == before


async def test_whoever_wants_to_know_is_told_of_a_revocation() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    told: list[bool] = []
    at.authorities.changed.append(lambda: told.append(at.authorities.is_revoked(f"certificate:{issued.serial}")))
    await at.authorities.revoke("anna")
    assert told == [True]


async def test_revoking_what_is_not_there_is_refused() -> None:
    at = await office()
    with pytest.raises(CertificateNotFound):
        await at.authorities.revoke("nobody")


async def test_a_key_that_was_compromised_is_never_certified_again() -> None:
    at = await office()
    key = ec.generate_private_key(ec.SECP256R1())
    await at.authorities.issue("anna", csr=pem(request(key)))
    await at.authorities.revoke("anna", "key-compromise")
    at = await at.reopened()
    with pytest.raises(sealane.InvalidArgument, match="compromised"):
        await at.authorities.issue("bert", csr=pem(request(key)))


async def test_the_revocation_list_has_what_is_revoked_and_not_yet_over() -> None:
    at = await office()
    short, long = await at.authorities.issue("anna", days=1), await at.authorities.issue("bert")
    await at.authorities.issue("carl")
    await at.authorities.revoke("anna")
    await at.authorities.revoke("bert", "key-compromise")
    first = x509.load_pem_x509_crl(at.authorities.crl())
    at.clock.pass_days(2)
    second = x509.load_pem_x509_crl(at.authorities.crl())

    assert {each.serial_number for each in first} == {int(short.serial, 16), int(long.serial, 16)}
    assert [each.serial_number for each in second] == [int(long.serial, 16)]
    entry = second.get_revoked_certificate_by_serial_number(int(long.serial, 16))
    assert entry is not None
    assert entry.extensions.get_extension_for_class(x509.CRLReason).value.reason == x509.ReasonFlags.key_compromise
    root = x509.load_pem_x509_certificate(at.authorities.trusted().encode())
    assert second.is_signature_valid(root.public_key())  # type: ignore[arg-type]
    numbers = [each.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number for each in (first, second)]
    assert numbers[0] < numbers[1]
    assert second.next_update_utc is not None
    assert second.next_update_utc > second.last_update_utc


async def test_two_revocation_lists_of_the_same_moment_have_different_numbers() -> None:
    at = await office()
    lists = [x509.load_pem_x509_crl(at.authorities.crl()) for _ in range(2)]
    numbers = [each.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number for each in lists]
    assert numbers[0] < numbers[1]


async def test_each_authority_has_a_revocation_list_of_its_own() -> None:
    at = await office()
    await at.authorities.init(domain="example.com")
    issued = await at.authorities.issue("client001.example.com")
    await at.authorities.revoke(issued.serial)
    assert not list(x509.load_pem_x509_crl(at.authorities.crl()))
    assert len(list(x509.load_pem_x509_crl(at.authorities.crl("example.com")))) == 1
    assert at.authorities.crls().count(b"BEGIN X509 CRL") == 2


async def test_certificates_that_ended_long_ago_are_forgotten_but_compromised_keys_are_not() -> None:
    at = await office()
    await at.authorities.issue("anna", days=1)
    await at.authorities.issue("bert", days=1)
    await at.authorities.revoke("bert", "key-compromise")
    at.clock.pass_days(1 + KEPT_US / DAY_US)
    assert await at.authorities.ledger.forget_old(at.clock()) == 0
    at.clock.pass_days(0.01)
    assert await at.authorities.ledger.forget_old(at.clock()) == 1
    assert [each.name for each in (await at.reopened()).authorities.ledger] == ["bert"]
