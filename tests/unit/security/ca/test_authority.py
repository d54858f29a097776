"""What authorities sign: certificates that the strictest verification takes, for what they were asked and no more."""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID

from sealane.security.ca.authority import BACKDATED_US
from sealane.security.ca.names import fingerprint
from sealane.security.settings import CertificateSettings, KeyType
from tests.unit.security.ca.handshake import End, shake_hands
from tests.unit.security.ca.small_authority import Clock, Office, Signer, der, key_pem, office, parsed, pem, request

KEYS: dict[str, Callable[[], Signer]] = {
    "RSA-2048": lambda: rsa.generate_private_key(65_537, 2_048),
    "P-256": lambda: ec.generate_private_key(ec.SECP256R1()),
    "P-384": lambda: ec.generate_private_key(ec.SECP384R1()),
    "P-521": lambda: ec.generate_private_key(ec.SECP521R1()),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


async def now_office(key_type: KeyType = "ecdsa-p384") -> Office:
    """TLS looks at the clock on the wall."""
    return await office(CertificateSettings(key_type=key_type), Clock(time.time_ns() // 1_000))


async def server_end(at: Office) -> End:
    issued = await at.authorities.issue("node.example.com", usage="server", names=["localhost", "127.0.0.1", "::1"])
    assert issued.key is not None
    return End(issued.certificate, issued.key, at.authorities.trusted())


@pytest.mark.parametrize("key_type", ["ecdsa-p384", "rsa-4096"])
@pytest.mark.parametrize("host", ["node.example.com", "localhost", "127.0.0.1", "::1"])
async def test_both_ends_of_a_connection_pass_strict_verification(key_type: KeyType, host: str) -> None:
    at = await now_office(key_type)
    server = await server_end(at)
    client = await at.authorities.issue("client001.example.com")
    assert client.key is not None

    _, seen = shake_hands(server, End(client.certificate, client.key, client.ca), host)

    principal = at.authorities.principal(seen)
    assert (principal.name, principal.domain) == ("client001.example.com", "example.com")
    assert principal.client_id == client.fingerprint == fingerprint(seen)


@pytest.mark.parametrize("kind", KEYS)
async def test_every_kind_of_key_that_a_request_may_have_is_good_for_tls(kind: str) -> None:
    at = await now_office()
    server = await server_end(at)
    key = KEYS[kind]()
    client = await at.authorities.issue("anna", csr=pem(request(key)))
    assert client.key is None

    _, seen = shake_hands(server, End(client.certificate, key_pem(key), client.ca), "localhost")

    assert at.authorities.principal(seen).name == "anna"


async def test_a_client_of_a_domain_with_an_authority_of_its_own_passes_too() -> None:
    at = await now_office()
    await at.authorities.init(domain="example.com")
    server = await server_end(at)
    client = await at.authorities.issue("client001.example.com")
    assert client.key is not None

    _, seen = shake_hands(server, End(client.certificate, client.key, client.ca), "localhost")

    assert at.authorities.principal(seen).domain == "example.com"


async def test_tls_refuses_a_certificate_of_another_authority_with_the_same_names() -> None:
    at, other = await now_office(), await now_office()
    server = await server_end(at)
    stranger = await other.authorities.issue("client001.example.com")
    assert stranger.key is not None
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, End(stranger.certificate, stranger.key, at.authorities.trusted()), "localhost")


async def test_tls_refuses_a_clients_certificate_as_a_servers() -> None:
    at = await now_office()
    client = await at.authorities.issue("localhost")
    assert client.key is not None
    end = End(client.certificate, client.key, client.ca)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(end, end, "localhost")


async def test_a_certificate_says_what_strict_verifiers_look_for() -> None:
    at = await office()
    certificate = parsed(await at.authorities.issue("anna"))
    root = x509.load_pem_x509_certificate(at.authorities.trusted().encode())

    of_root = root.extensions
    constraints = of_root.get_extension_for_class(x509.BasicConstraints)
    assert (constraints.critical, constraints.value) == (True, x509.BasicConstraints(ca=True, path_length=0))
    usage = of_root.get_extension_for_class(x509.KeyUsage)
    assert usage.critical
    assert usage.value.key_cert_sign
    assert usage.value.crl_sign
    assert not usage.value.digital_signature
    said = certificate.extensions
    assert said.get_extension_for_class(x509.BasicConstraints).critical
    assert not said.get_extension_for_class(x509.BasicConstraints).value.ca
    assert said.get_extension_for_class(x509.KeyUsage).critical
    assert list(said.get_extension_for_class(x509.ExtendedKeyUsage).value) == [ExtendedKeyUsageOID.CLIENT_AUTH]
    root_id = of_root.get_extension_for_class(x509.SubjectKeyIdentifier).value.digest
    assert said.get_extension_for_class(x509.AuthorityKeyIdentifier).value.key_identifier == root_id
    names = said.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.UniformResourceIdentifier) == ["urn:sealane:account:anna"]
    assert certificate.version == x509.Version.v3


async def test_serials_are_positive_random_and_of_at_most_twenty_bytes() -> None:
    at = await office()
    serials = [parsed(await at.authorities.issue("anna")).serial_number for _ in range(20)]
    assert len(set(serials)) == len(serials)
    assert all(0 < serial < 2**159 for serial in serials)
    assert max(serial.bit_length() for serial in serials) > 140


async def test_a_certificate_begins_a_little_earlier_for_clocks_that_are_late() -> None:
    at = await office()
    record = at.authorities.ledger.find((await at.authorities.issue("anna")).serial)[0]
    assert record.not_before_us == at.clock.now_us - BACKDATED_US
    assert record.not_after_us == at.clock.now_us + 365 * 24 * 3600 * 1_000_000


async def test_days_may_be_a_fraction() -> None:
    at = await office()
    issued = await at.authorities.issue("anna", days=0.5)
    assert issued.not_after_us == at.clock.now_us + 12 * 3600 * 1_000_000


async def test_nothing_outlives_its_authority() -> None:
    at = await office(CertificateSettings(authority_days=100))
    issued = await at.authorities.issue("anna", days=1e300)
    assert issued.not_after_us == at.authorities.info().not_after_us


async def test_a_request_gets_its_key_certified_and_nothing_else_that_it_asks_for() -> None:
    at = await office()
    key = ec.generate_private_key(ec.SECP256R1())
    certificate = parsed(await at.authorities.issue("anna", csr=pem(request(key, "admin"))))
    assert certificate.public_key() == key.public_key()
    assert certificate.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value == "anna"
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == []


async def test_a_servers_names_are_told_apart_from_addresses() -> None:
    at = await office()
    issued = await at.authorities.issue("node", usage="server", names=["127.0.0.1", "*.example.com", "127.0.0.1"])
    names = parsed(issued).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["node", "*.example.com"]
    assert [str(each) for each in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]


async def test_private_keys_are_in_no_repr() -> None:
    at = await office()
    issued = await at.authorities.issue("anna")
    assert issued.key is not None
    secret = issued.key.splitlines()[1]
    assert secret not in repr(issued)
    for _, record in at.authorities._own._records:
        assert repr(record) == "AuthorityRecord('root')"
    assert der(issued) not in repr(at.authorities).encode()
