"""What is refused: certificates that do not count, requests that prove nothing, names that are more than names."""

from __future__ import annotations

import base64
import os
import warnings
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, rsa
from cryptography.hazmat.primitives.serialization import Encoding

import sealane
from sealane.errors import Unauthenticated
from sealane.security.authenticators.certificates import CertificateAuthenticator
from sealane.security.ca.authority import Authority, Wish
from sealane.security.ca.keys import RSA_BITS_MAX, RSA_BITS_MIN, RSA_EXPONENT_MIN, check_strength
from sealane.security.ca.names import COMMON_NAME_CHARS_MAX, HOST_NAME_CHARS_MAX
from sealane.security.ca.requests import REQUEST_CHARS_MAX
from sealane.security.introductions import Introduction
from tests.unit.security.ca.small_authority import Office, der, office, pem, request


def refusal(at: Office, shown: bytes) -> str:
    with pytest.raises(Unauthenticated) as refused:
        at.authorities.principal(shown)
    return str(refused.value)


# --- certificates -----------------------------------------------------------------------------------------------------


async def test_an_expired_certificate_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna", days=1)
    at.clock.now_us = issued.not_after_us
    assert at.authorities.principal(der(issued)).name == "anna"
    at.clock.now_us += 1
    assert "is expired since 2030-03-18 17:46:40 UTC" in refusal(at, der(issued))


async def test_a_certificate_that_is_not_yet_valid_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    at.clock.pass_days(-1)
    assert "is not valid before" in refusal(at, der(issued))


async def test_a_certificate_of_another_authority_with_the_same_names_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    root = x509.load_pem_x509_certificate(issued.ca.encode())
    called = str(root.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value)
    imposter = Authority.create(called, key_type="ecdsa-p384", days=100, now_us=at.clock(), entropy=os.urandom)
    assert imposter.certificate.subject == root.subject
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    forged = imposter.issue(Wish("anna", key, "client", (), 10), at.clock(), os.urandom)
    assert "is not by an authority of this node" in refusal(at, forged.public_bytes(Encoding.DER))


async def test_a_certificate_that_was_changed_is_refused() -> None:
    at = await office()
    shown = bytearray(der(await at.authorities.issue("anna")))
    shown[shown.index(b"anna") + 3] = ord("e")
    assert "is not by an authority of this node" in refusal(at, bytes(shown))


async def test_a_revoked_certificate_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    await at.authorities.revoke("anna", "key-compromise")
    text = refusal(at, der(issued))
    assert "was revoked on 2030-03-17 17:46:40 UTC" in text
    assert "compromise" not in text, "why is not for its holder"


async def test_a_certificate_for_another_domain_than_its_accounts_is_refused() -> None:
    at = await office()
    await at.authorities.init(domain="example.com")
    issued = await at.authorities.issue("client001.example.com")
    await at.accounts.remove("client001.example.com")
    await at.accounts.ensure("client001.example.com", domain="bank")
    text = refusal(at, der(issued))
    assert "wrong domain" in text
    assert "bank" not in text


async def test_a_servers_certificate_is_refused_as_a_clients() -> None:
    at = await office()
    await at.accounts.ensure("node")
    issued = await at.authorities.issue("node", usage="server")
    assert "is a server's" in refusal(at, der(issued))


async def test_an_unknown_serial_signed_by_our_own_key_is_refused() -> None:
    at = await office()
    await at.accounts.ensure("anna")
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    unknown = at.authorities._own.get("root").issue(Wish("anna", key, "client", (), 10), at.clock(), os.urandom)
    assert "has no record of it" in refusal(at, unknown.public_bytes(Encoding.DER))


async def test_the_authoritys_own_certificate_is_refused_as_a_clients() -> None:
    at = await office()
    root = x509.load_pem_x509_certificate(at.authorities.trusted().encode())
    assert "has no record of it" in refusal(at, root.public_bytes(Encoding.DER))


async def test_a_certificate_of_a_disabled_account_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    await at.accounts.change("anna", disabled=True)
    assert "not valid here" in refusal(at, der(issued))
    with pytest.raises(sealane.InvalidArgument, match="disabled"):
        await at.authorities.issue("anna")


async def test_a_certificate_of_an_account_that_is_gone_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    await at.accounts.remove("anna")
    assert "not valid here" in refusal(at, der(issued))


async def test_a_certificate_of_an_earlier_account_of_the_same_name_is_refused() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    at.clock.pass_days(1)
    await at.accounts.remove("anna")
    await at.accounts.ensure("anna")
    assert "an earlier one of that name" in refusal(at, der(issued))
    assert at.authorities.principal(der(await at.authorities.issue("anna"))).name == "anna"


async def test_a_clock_that_was_set_back_does_not_make_a_certificate_older_than_its_account() -> None:
    at = await office()
    at.clock.pass_days(1)
    await at.accounts.ensure("anna")
    at.clock.pass_days(-1)
    assert at.authorities.principal(der(await at.authorities.issue("anna"))).name == "anna"


@pytest.mark.parametrize("shown", [b"", b"not a certificate", b"\x30\x82\xff\xff", bytes(10_000)])
async def test_bytes_that_are_no_certificate_are_refused(shown: bytes) -> None:
    assert refusal(await office(), shown) == "what was shown is not an X.509 certificate"


async def test_a_certificate_of_a_version_that_there_is_not_is_refused() -> None:
    at = await office()
    third_version, another = bytes.fromhex("a003020102"), bytes.fromhex("a003020142")
    shown = der(await at.authorities.issue("anna")).replace(third_version, another, 1)
    assert refusal(at, shown) == "what was shown is not an X.509 certificate"


async def test_the_authenticator_leaves_those_alone_who_show_something_else() -> None:
    at = await office()
    shown = der(await at.authorities.issue("anna"))
    authenticator = CertificateAuthenticator(at.authorities)
    principal = await authenticator.authenticate(Introduction(certificate=shown))
    assert principal is not None
    assert principal.name == "anna"
    assert await authenticator.authenticate(Introduction()) is None
    assert await authenticator.authenticate(Introduction(credentials={"token": "x"}, certificate=shown)) is None
    with pytest.raises(Unauthenticated):
        await authenticator.authenticate(Introduction(certificate=b"junk"))


# --- requests ---------------------------------------------------------------------------------------------------------


async def refused_request(csr: str) -> str:
    at = await office()
    with pytest.raises(sealane.InvalidArgument) as refused:
        await at.authorities.issue("anna", csr=csr)
    assert at.accounts.find("anna") is None, "a refusal leaves nothing behind"
    assert list(at.authorities.ledger) == []
    return refused.value.problem


async def test_a_request_with_a_bad_signature_is_refused() -> None:
    made = bytearray(request(ec.generate_private_key(ec.SECP256R1())).public_bytes(Encoding.DER))
    made[made.index(b"whoever")] ^= 1
    assert "signature" in await refused_request(pem(x509.load_der_x509_csr(bytes(made))))


def _weak_rsa(bits: int) -> rsa.RSAPrivateKey:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return rsa.generate_private_key(65_537, bits)


@pytest.mark.parametrize(
    ("key", "problem"),
    [
        (lambda: _weak_rsa(1_024), "1,024 bits"),
        (lambda: _weak_rsa(2_047), "2,047 bits"),
        (lambda: rsa.generate_private_key(3, 2_048), "exponent"),
        (lambda: ec.generate_private_key(ec.SECP224R1()), "secp224r1"),
        (lambda: ec.generate_private_key(ec.SECP256K1()), "secp256k1"),
    ],
)
async def test_a_request_with_a_weak_key_is_refused(
    key: Callable[[], rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey], problem: str
) -> None:
    assert problem in await refused_request(pem(request(key())))


@pytest.mark.parametrize(
    ("bits", "is_fine"),
    [(RSA_BITS_MIN - 1, False), (RSA_BITS_MIN, True), (RSA_BITS_MAX, True), (RSA_BITS_MAX + 1, False)],
)
def test_rsa_keys_have_so_many_bits(bits: int, is_fine: bool) -> None:
    key = rsa.RSAPublicNumbers(RSA_EXPONENT_MIN, 2 ** (bits - 1) + 1).public_key()
    if is_fine:
        assert check_strength(key) is key
    else:
        with pytest.raises(sealane.InvalidArgument, match="bits"):
            check_strength(key)


async def test_a_request_with_a_key_of_another_kind_is_refused() -> None:
    made = x509.CertificateSigningRequestBuilder(x509.Name([])).sign(ed448.Ed448PrivateKey.generate(), None)
    assert "of a kind" in await refused_request(pem(made))


@pytest.mark.parametrize(
    "text", ["", "junk", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----"]
)
async def test_what_is_no_request_is_refused(text: str) -> None:
    assert "is not a certificate signing request" in await refused_request(text)


async def test_a_request_of_a_version_that_there_is_not_is_refused() -> None:
    made = x509.load_pem_x509_csr(pem(request(ec.generate_private_key(ec.SECP256R1()))).encode())
    other = made.public_bytes(Encoding.DER).replace(bytes.fromhex("020100"), bytes.fromhex("020110"), 1)
    body = base64.encodebytes(other).decode()
    text = f"-----BEGIN CERTIFICATE REQUEST-----\n{body}-----END CERTIFICATE REQUEST-----\n"
    assert "is not a certificate signing request" in await refused_request(text)


async def test_a_request_that_is_too_long_is_refused() -> None:
    made = pem(request(ec.generate_private_key(ec.SECP256R1())))
    assert "the limit is" in await refused_request(made + "\n" * (REQUEST_CHARS_MAX + 1 - len(made)))
    at = await office()
    await at.authorities.issue("anna", csr=made + "\n" * (REQUEST_CHARS_MAX - len(made)))


# --- names and numbers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name",
    ["../../etc/x", "a/b", "a\\b", "..", ".", "", ".hidden", "a..b", "a\0b", "a\nb", "-rf", "CN=root,O=x", "ä", "a b"],
)
async def test_a_name_that_is_a_path_or_worse_is_refused(name: str) -> None:
    at = await office()
    for usage in ("client", "server"):
        with pytest.raises(sealane.InvalidName):
            await at.authorities.issue(name, usage=usage)


async def test_a_name_longer_than_x509_allows_is_refused() -> None:
    at = await office()
    await at.authorities.issue("a" * COMMON_NAME_CHARS_MAX)
    with pytest.raises(sealane.InvalidName):
        await at.authorities.issue("a" * (COMMON_NAME_CHARS_MAX + 1))


async def test_a_name_in_the_systems_domain_is_refused() -> None:
    at = await office()
    with pytest.raises(sealane.InvalidName):
        await at.authorities.issue("mallory._system")
    with pytest.raises(sealane.InvalidName):
        await at.authorities.init(domain="_system")
    with pytest.raises(sealane.InvalidName):
        await at.authorities.init(domain="../x")


@pytest.mark.parametrize("name", ["", "a b", "a/b", "http://x", "a,b", "a..b", "*", "x" * (HOST_NAME_CHARS_MAX + 1)])
async def test_a_host_that_is_no_name_and_no_address_is_refused(name: str) -> None:
    at = await office()
    with pytest.raises(sealane.InvalidArgument, match="names"):
        await at.authorities.issue("node", usage="server", names=[name])


async def test_the_longest_host_name_is_taken() -> None:
    at = await office()
    await at.authorities.issue("node", usage="server", names=["x" * HOST_NAME_CHARS_MAX])


@pytest.mark.parametrize("days", [0, -1, float("nan"), float("inf")])
async def test_a_time_that_is_none_is_refused(days: float) -> None:
    at = await office()
    with pytest.raises(sealane.InvalidArgument, match="days"):
        await at.authorities.issue("anna", days=days)


async def test_other_roles_than_an_account_has_are_refused() -> None:
    at = await office()
    await at.authorities.issue("anna")
    with pytest.raises(sealane.AlreadyExists, match="its roles are member"):
        await at.authorities.issue("anna", roles=["admin"])


async def test_hosts_are_refused_for_clients_and_roles_for_servers() -> None:
    at = await office()
    with pytest.raises(sealane.InvalidArgument, match="names"):
        await at.authorities.issue("anna", names=["localhost"])
    with pytest.raises(sealane.InvalidArgument, match="roles"):
        await at.authorities.issue("node", usage="server", roles=["admin"])


async def test_an_authority_that_has_ended_signs_no_more() -> None:
    at = await office()
    at.clock.pass_days(3_650)
    with pytest.raises(sealane.InvalidArgument, match="ended on"):
        await at.authorities.issue("anna")
