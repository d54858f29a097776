"""The files of a node's own identity, in its data directory.

    identity/ca.crt       whom clients trust, to know the node
    identity/ca.crl       what was revoked, for others to read
    identity/server.crt   what the node shows: its certificate, and behind it the authority's
    identity/server.key   its private key, for the owner alone
    admin.profile         how the command line on this machine comes in, for the owner alone

The authority's own key is in none of them: it is a sealed record.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from cryptography import x509

from sealane.client.profiles import ADMIN_PROFILE, Profile, read_profile, write_profile
from sealane.doors.tls import NodeTls
from sealane.errors import SealaneError
from sealane.node.identity_files import AUTHORITY_FILE, IDENTITY_DIRECTORY
from sealane.whole_files import PRIVATE, PUBLIC, replace_file


class IdentityFiles:
    """Each file is written whole or not at all."""

    def __init__(self, data: Path) -> None:
        self.data = data
        directory = data / IDENTITY_DIRECTORY
        self.ca = directory / AUTHORITY_FILE
        self.server_certificate = directory / "server.crt"
        self.server_key = directory / "server.key"
        self.admin_profile = data / ADMIN_PROFILE

    def make_private(self) -> None:
        """Make the directories, for their owner alone. One that is someone else's stays as it is."""
        for directory in (self.data, self.ca.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)
            with suppress(PermissionError):
                directory.chmod(0o700)

    # --- the server's -------------------------------------------------------------------------------------------------

    def tls(self, trusted: str | None = None) -> NodeTls | None:
        """TLS by what is there; None if something is missing, or does not belong together."""
        try:
            return NodeTls(self.server_certificate, self.server_key, trusted or self.ca.read_text())
        except OSError:
            return None

    def read_server_certificate(self) -> x509.Certificate | None:
        """None if there is none that TLS can be had by."""
        if self.tls() is None:
            return None
        return x509.load_pem_x509_certificate(self.server_certificate.read_bytes())

    def write_server(self, certificate: str, key: str, ca: str) -> None:
        # A crash in between leaves what does not belong together, which is found at the next start.
        replace_file(self.ca, ca.encode(), PUBLIC)
        replace_file(self.server_key, key.encode(), PRIVATE)
        # If it stood alone, OpenSSL would look for the authority, and check its signature, in each handshake.
        replace_file(self.server_certificate, f"{certificate}{ca}".encode(), PUBLIC)

    # --- the administrator's ------------------------------------------------------------------------------------------

    def read_admin(self) -> Profile | None:
        """None if there is none that can be used."""
        try:
            return read_profile(self.admin_profile)
        except (OSError, SealaneError):
            return None

    def write_admin(self, profile: Profile) -> None:
        write_profile(self.admin_profile, profile)
