"""A TLS 1.3 handshake in memory, both ends verifying the other as strictly as OpenSSL can."""

from __future__ import annotations

import ssl
import tempfile
from dataclasses import dataclass
from pathlib import Path

STRICT = ssl.VERIFY_X509_STRICT | ssl.VERIFY_X509_PARTIAL_CHAIN
"""What Python 3.13 sets by default."""
_TURNS_MAX = 20


@dataclass(frozen=True)
class End:
    """One end of a connection: who it is, and by which authorities it knows the other end (all PEM)."""

    certificate: str
    key: str
    trusted: str


def shake_hands(server: End, client: End, host: str) -> tuple[bytes, bytes]:
    """The certificates (DER) that the client and the server saw. Raises `ssl.SSLError` when one refuses the other."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    serving = _context(ssl.PROTOCOL_TLS_SERVER, server).wrap_bio(to_server, to_client, server_side=True)
    asking = _context(ssl.PROTOCOL_TLS_CLIENT, client).wrap_bio(to_client, to_server, server_hostname=host)
    waiting = [asking, serving]
    for _ in range(_TURNS_MAX):
        waiting = [end for end in waiting if not _is_done(end)]
        if not waiting:
            break
    assert not waiting, "the handshake goes on for ever"
    server_shown, client_shown = asking.getpeercert(binary_form=True), serving.getpeercert(binary_form=True)
    assert server_shown is not None
    assert client_shown is not None
    return server_shown, client_shown


def _is_done(end: ssl.SSLObject) -> bool:
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _context(protocol: int, end: End) -> ssl.SSLContext:
    context = ssl.SSLContext(protocol)
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_mode = ssl.CERT_REQUIRED
    context.verify_flags |= STRICT
    context.load_verify_locations(cadata=end.trusted)
    with tempfile.TemporaryDirectory() as directory:
        # OpenSSL takes keys from files alone.
        chain = Path(directory, "chain.pem")
        chain.touch(0o600)
        chain.write_text(end.certificate + end.key, encoding="ascii")
        context.load_cert_chain(chain)
    return context
