"""Meeting a node whose authority nobody knows here yet: look at what it shows, for a person to compare."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ssl
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.client.remote.addresses import Endpoint, Nodes, resolve
from sealane.client.remote.distrust import refused_by_node
from sealane.errors import Unavailable, UntrustedNode
from sealane.node.surroundings import of_this_machine

LOOK_SECONDS = 5.0


class ShownAuthority(NamedTuple):
    """An authority as a stranger shows it: it is to be trusted only by someone who knows its fingerprint."""

    pem: str
    fingerprint: str
    """SHA-256 of its certificate, in hex."""

    def has_fingerprint(self, expected: str) -> bool:
        """Also as others write it: in capitals, with colons or spaces, with `SHA256:` in front."""
        digits = "".join(expected.lower().removeprefix("sha256:").replace(":", "").split())
        return hmac.compare_digest(digits.encode(), self.fingerprint.encode())


async def authority_at(nodes: Nodes) -> ShownAuthority:
    """The authority at the end of the chain that the first of these nodes shows which answers.

    Nothing is told to the node, nor believed. Raises `Unavailable`, and `UntrustedNode` if it shows no authority.
    """
    endpoints, problems = await resolve(nodes.addresses, of_this_machine().entropy)
    for endpoint in endpoints:
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                return _authority_in(await _chain_at(endpoint), endpoint)
        except ssl.SSLError as error:
            raise refused_by_node(endpoint, error) from None
        except TimeoutError:
            problems.append(f"{endpoint}: no answer within {LOOK_SECONDS:g} s")
        except OSError as error:
            problems.append(f"{endpoint}: {error.strerror or error}")
    raise Unavailable("; ".join(problems) + "; is a node running there?")


async def _chain_at(endpoint: Endpoint) -> list[bytes]:
    """The certificates that are shown there (DER), the node's own first."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    # Only to look: the connection ends before anything is said on it.
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    host, port = endpoint.address
    _, writer = await asyncio.open_connection(host, port, ssl=context, server_hostname=endpoint.name)
    try:
        return _unverified_chain(writer.get_extra_info("ssl_object"))
    finally:
        writer.transport.abort()


def _unverified_chain(tls: ssl.SSLObject) -> list[bytes]:
    if hasattr(tls, "get_unverified_chain"):
        return list(tls.get_unverified_chain())
    # Before Python 3.13 the same is there under a private name.
    shown = tls._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
    return [ssl.PEM_cert_to_DER_cert(each.public_bytes()) for each in shown or ()]


def _authority_in(chain: list[bytes], endpoint: Endpoint) -> ShownAuthority:
    for der in reversed(chain):
        certificate = x509.load_der_x509_certificate(der)
        if certificate.issuer == certificate.subject:
            pem = certificate.public_bytes(Encoding.PEM).decode()
            return ShownAuthority(pem, hashlib.sha256(der).hexdigest())
    hint = "get ca.crt from whoever runs it, and give it by --ca"
    raise UntrustedNode(str(endpoint), "it does not show its authority's certificate", hint)
