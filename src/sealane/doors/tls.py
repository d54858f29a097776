"""The node's side of TLS: one context for every handshake that begins now, exchanged while the doors stay open."""

from __future__ import annotations

import ssl
from pathlib import Path


class NodeTls:
    """The certificate that the node shows, and the authorities whose certificates it takes from clients.

    TLS 1.3 and nothing older; no session tickets, so that no connection skips the look at its certificate. A client
    may come without a certificate: whether its API key, token or password is enough is for the gate to say. Whether a
    certificate was revoked is for the gate too, since OpenSSL can forget neither a revocation list nor an authority.
    """

    def __init__(self, certificate: Path, key: Path, trusted: str) -> None:
        """Two files, and the authorities' certificates (PEM). Raises `OSError` (`ssl.SSLError` is one)."""
        self._certificate = certificate
        self._key = key
        self._trusted = trusted
        self._contexts = {"": self._make("", trusted)}
        """By the protocol that is spoken inside; none is named where clients ask for none."""

    @property
    def context(self) -> ssl.SSLContext:
        """For the next handshake: another one after each `reload`."""
        return self._contexts[""]

    def context_for(self, protocol: str) -> ssl.SSLContext:
        """The same for clients that ask, while they shake hands, whether this protocol is spoken (ALPN)."""
        if protocol not in self._contexts:
            self._contexts[protocol] = self._make(protocol, self._trusted)
        return self._contexts[protocol]

    def reload(self, trusted: str) -> None:
        """Read the files again. Whoever is inside stays; handshakes from now on see what is new, and only that.

        Raises `OSError`; then all stays as it was.
        """
        self._contexts = {protocol: self._make(protocol, trusted) for protocol in self._contexts}
        self._trusted = trusted

    def _make(self, protocol: str, trusted: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.verify_mode = ssl.CERT_OPTIONAL
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        context.load_cert_chain(self._certificate, self._key)
        context.load_verify_locations(cadata=trusted)
        if protocol:
            context.set_alpn_protocols([protocol])
        return context
