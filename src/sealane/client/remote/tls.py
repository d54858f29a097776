"""TLS as a lane uses it: whom it trusts, and what it shows."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime

from sealane.client.remote.pem import Pem, PemLike, as_private_file
from sealane.errors import InvalidArgument
from sealane.log import get_log

HANDSHAKE_SECONDS = 5.0
SHUTDOWN_SECONDS = 1.0
"""For the node to answer that it has heard of the end; what matters was said before, by `Goodbye`."""

log = get_log("sealane.client")


class ClientTls:
    """Makes the context of each new connection: TLS 1.3, the node's certificate verified strictly, also its name.

    Files are read again when they have changed, so that a renewed certificate is shown from the next connection on.
    """

    def __init__(
        self, *, ca: PemLike | None = None, certificate: PemLike | None = None, key: PemLike | None = None
    ) -> None:
        """`ca`: only these authorities are trusted; without it, those that the machine trusts. The key may be in the
        certificate's file. Raises `InvalidArgument` for what cannot be used.
        """
        if key is not None and certificate is None:
            raise InvalidArgument("certificate", "is missing: a key alone shows nothing")
        self._ca = None if ca is None else Pem("ca", ca)
        self._certificate = None if certificate is None else Pem("certificate", certificate)
        self._key = None if key is None else Pem("certificate_key", key)
        self._state = self._look()
        self._context = self._make()

    @property
    def has_own_trust(self) -> bool:
        """Whether authorities were given, instead of those of the machine."""
        return self._ca is not None

    @property
    def shows_certificate(self) -> bool:
        return self._certificate is not None

    def context(self) -> ssl.SSLContext:
        """For a connection that begins now."""
        state = self._look()
        if state != self._state:
            try:
                self._context = self._make()
            except InvalidArgument as error:
                # Of several files one may be new and another not yet: until they fit, the old ones do.
                log.warning("changed certificates cannot be used yet", cause=str(error))
            else:
                self._state = state
        return self._context

    def for_looking(self) -> ssl.SSLContext:
        """A context that shows nothing and takes any name, but trusts nobody else: to find out what went wrong."""
        context = _new_context(None if self._ca is None else self._ca.read())
        context.check_hostname = False
        return context

    def own_problem(self) -> str | None:
        """Why no node would take the client's certificate now, as far as its dates tell."""
        if self._certificate is None:
            return None
        from cryptography import x509

        certificate = x509.load_pem_x509_certificate(self._certificate.read())
        now = datetime.now(UTC)
        if now > certificate.not_valid_after_utc:
            return f"it has expired on {certificate.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        if now < certificate.not_valid_before_utc:
            return f"it is not valid before {certificate.not_valid_before_utc:%Y-%m-%d %H:%M} UTC"
        return None

    def _look(self) -> tuple[object, ...]:
        return tuple(None if pem is None else pem.state for pem in (self._ca, self._certificate, self._key))

    def _make(self) -> ssl.SSLContext:
        context = _new_context(None if self._ca is None else self._ca.read())
        if self._certificate is not None:
            _show(context, self._certificate.read() + b"\n" + (b"" if self._key is None else self._key.read()))
        return context


def _new_context(ca: bytes | None) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # Verifies certificate and name.
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_STRICT
    if ca is None:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
        return context
    # An authority that was given is trusted whoever has issued it.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        context.load_verify_locations(cadata=ca.decode("ascii", errors="replace"))
    except (ssl.SSLError, ValueError):
        raise InvalidArgument("ca", "holds no certificate that can be read") from None
    return context


def _show(context: ssl.SSLContext, pem: bytes) -> None:
    try:
        with as_private_file(pem) as path:
            context.load_cert_chain(path, password=_no_passphrase)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise InvalidArgument("certificate_key", "is not the key of the certificate") from None
        problem = "no certificate with its private key can be read; both are needed, in one file or in two"
        raise InvalidArgument("certificate", problem) from None


def _no_passphrase() -> str:
    """Instead of a question on the terminal, which a program in the background would wait at forever."""
    raise InvalidArgument(
        "certificate_key", "is encrypted with a passphrase; give it without one, in a file of mode 600"
    )
