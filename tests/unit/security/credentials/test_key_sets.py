"""Public keys by https: fetched from whoever is trusted, and from nobody else."""

from __future__ import annotations

import asyncio
import ipaddress
import json
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from sealane.errors import Unavailable
from sealane.security.credentials import key_sets
from sealane.security.credentials.key_sets import KEY_SET_BYTES_MAX, KeySet
from tests.unit.security.credentials.test_external_tokens import EC, public
from tests.unit.security.identities import Clock


class Answers(BaseHTTPRequestHandler):
    """By path: keys, a redirect to them, or more than anyone wants."""

    def do_GET(self) -> None:
        if self.path == "/moved":
            self.send_response(302)
            self.send_header("Location", "/keys")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b" " * KEY_SET_BYTES_MAX if self.path == "/large" else b"")
        self.wfile.write(_keys())

    def log_message(self, format: str, *arguments: Any) -> None:
        """Nobody reads it."""


def _keys() -> bytes:
    return json.dumps({"keys": [public(EC, "e")]}).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Its URL, and the certificate that says so."""
    pem = tmp_path_factory.mktemp("tls") / "server.pem"
    _write_certificate(pem)
    listening = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    listening.socket = context.wrap_socket(listening.socket, server_side=True)
    thread = threading.Thread(target=listening.serve_forever)
    thread.start()
    yield f"https://127.0.0.1:{listening.server_address[1]}", pem
    listening.shutdown()
    listening.server_close()
    thread.join()


def _write_certificate(path: Path) -> None:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "issuer")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(EC.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(EC, hashes.SHA256())
    )
    key = EC.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + key)


@pytest.fixture
def trusted(server: tuple[str, Path], monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a server whose certificate this machine trusts."""
    url, pem = server
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    return url


async def test_keys_are_fetched_by_https(trusted: str) -> None:
    found = await KeySet(f"{trusted}/keys", Clock()).find("e")
    assert found is not None
    assert found.algorithms == ("ES256",)
    assert isinstance(found.key, ec.EllipticCurvePublicKey)


async def test_a_server_that_nobody_vouches_for_is_not_believed(server: tuple[str, Path]) -> None:
    with pytest.raises(Unavailable):
        await KeySet(f"{server[0]}/keys", Clock()).find("e")


@pytest.mark.parametrize("path", ["/moved", "/large"])
async def test_a_redirect_is_not_followed_and_a_long_answer_not_read(trusted: str, path: str) -> None:
    with pytest.raises(Unavailable):
        await KeySet(trusted + path, Clock()).find("e")


async def test_many_who_come_at_once_cause_one_fetch(trusted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[str] = []
    read = key_sets._read

    def counting(source: str) -> bytes:
        looks.append(source)
        return read(source)

    monkeypatch.setattr(key_sets, "_read", counting)
    keys = KeySet(f"{trusted}/keys", Clock())
    assert all(await asyncio.gather(*(keys.find("e") for _ in range(20))))
    assert len(looks) == 1
