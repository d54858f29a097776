"""Coming in by a certificate of this node's own authorities."""

from __future__ import annotations

from sealane.security.ca.authorities import Authorities
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal


class CertificateAuthenticator:
    """TLS has checked that the peer holds the certificate's key; whose it is and whether it counts is checked here."""

    name = "certificate"

    def __init__(self, authorities: Authorities) -> None:
        self._authorities = authorities

    async def authenticate(self, shown: Introduction) -> Principal | None:
        """Whoever shows other credentials beside a certificate is whom those tell."""
        if shown.certificate is None or shown.credentials:
            return None
        return self._authorities.principal(shown.certificate)
