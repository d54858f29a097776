"""The node's own identity: an authority, a certificate to show, an administrator. Made at the first start, kept valid.

Whatever is missing, cannot be used or ends soon is made anew: at each start, and every few minutes while the node runs.
Nobody is disturbed by it: the old certificate is as good as the new one until it ends.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterable

import msgspec
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.client.profiles import Profile
from sealane.doors.listening import is_wildcard
from sealane.doors.tls import NodeTls
from sealane.errors import InvalidArgument, Unauthenticated
from sealane.log import get_log
from sealane.node.identity import Identity
from sealane.node.identity_files import write_crl
from sealane.security.ca.moments import DAY_US, said, to_us
from sealane.security.ca.names import host_names, serial_text
from sealane.security.principals import ADMIN_ROLE
from sealane.server.identity_files import IdentityFiles

log = get_log("sealane.server")

CHECK_SECONDS = 300.0
"""How often the node looks whether its certificates end soon: a small part of the shortest life that makes sense."""
ADMIN_ACCOUNT = "admin"
SERVER_NAME = "localhost"
"""What the node's certificate is called, whatever other names it is for."""
LOOPBACK_NAMES = (SERVER_NAME, "127.0.0.1", "::1")


class OwnIdentity:
    """Belongs to one event loop."""

    def __init__(
        self, identity: Identity, files: IdentityFiles, names: Iterable[str], tls: NodeTls | None = None
    ) -> None:
        """`names` are those by which clients reach the node; `tls` is what its doors show already, if they do."""
        self._identity = identity
        self._authorities = identity.authorities
        self._files = files
        self._names = tuple(dict.fromkeys((*LOOPBACK_NAMES, *names)))
        self._tls = tls
        self._shown = False
        """Whether `tls` knows all authorities: at the start it is made of files, which tell of the root alone."""
        self._url: str | None = None
        self._admin: Profile | None = None
        self.is_new = not self._authorities.ready
        """Whether it was made in this life of the node."""
        self._authorities.changed.append(self._show_newest)

    @property
    def tls(self) -> NodeTls:
        """What doors show, always the newest of it."""
        assert self._tls is not None, "`ensure` comes first"
        return self._tls

    @property
    def fingerprint(self) -> str:
        """SHA-256 of the authority's certificate, by which clients know the node."""
        return self._authorities.info().fingerprint

    async def ensure(self) -> None:
        """Make what is missing or ends soon, and show it."""
        if not self._authorities.ready:
            await self._authorities.init()
        due = self._is_due(self._files.read_server_certificate())
        if due:
            await self._make_server()
        if due or not self._shown:
            self._show_newest()
        await self._ensure_admin()

    async def keep(self) -> None:
        """For ever: `ensure` from time to time."""
        while True:
            await asyncio.sleep(CHECK_SECONDS)
            await self.ensure()

    def _show_newest(self) -> None:
        """Whoever comes from now on sees the newest certificate, and is known by the newest authorities; what was
        revoked is there for others to read.
        """
        try:
            write_crl(self._files.data, self._authorities.crls())
            if self._tls is None:
                self._tls = self._files.tls(self._authorities.trusted())
            else:
                self._tls.reload(self._authorities.trusted())
            self._shown = True
        except OSError as error:
            log.error("the node's certificate is shown as it was before", problem=str(error))

    # --- the server's certificate -------------------------------------------------------------------------------------

    def _is_due(self, certificate: x509.Certificate | None) -> bool:
        """Whether another one is needed: this one is of another authority, revoked, for other names, or over soon."""
        if certificate is None or self._files.ca.read_text() != self._authorities.info().certificate:
            return True
        if self._authorities.is_revoked(f"certificate:{serial_text(certificate.serial_number)}"):
            return True
        return self._ends_soon(certificate) or not self._is_for_every_name(certificate)

    def _is_for_every_name(self, certificate: x509.Certificate) -> bool:
        has = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return set(host_names(self._names)) <= set(has)

    def _ends_soon(self, certificate: x509.Certificate) -> bool:
        """Some weeks before its end; of a short life, in its last third."""
        begins, ends = to_us(certificate.not_valid_before_utc), to_us(certificate.not_valid_after_utc)
        margin_us = min(self._identity.settings.certificates.renew_days * DAY_US, (ends - begins) // 3)
        return self._identity.surroundings.clock() >= ends - margin_us

    async def _make_server(self) -> None:
        issued = await self._authorities.issue(SERVER_NAME, usage="server", names=self._names[1:])
        assert issued.key is not None, "no request was given, so a key was made"
        self._files.write_server(issued.certificate, issued.key, issued.ca)
        names = ", ".join(self._names)
        log.info("the node has a new certificate", serial=issued.serial, ends=said(issued.not_after_us), names=names)

    # --- the administrator --------------------------------------------------------------------------------------------

    async def _ensure_admin(self) -> None:
        account = self._identity.accounts.find(ADMIN_ACCOUNT)
        if account is not None and account.disabled:
            return  # Someone wants it so.
        self._admin = self._admin or self._files.read_admin()
        if self._admin is not None and self._is_good(self._admin):
            return
        roles = None if account is not None else {ADMIN_ROLE}
        old = None if self._admin is None else self._admin.certificate
        issued = await self._authorities.issue(ADMIN_ACCOUNT, roles=roles, replaces=old)
        self._admin = Profile("", ca=issued.ca, certificate=issued.certificate, key=issued.key, name=ADMIN_ACCOUNT)
        self._write_admin()
        log.info("the administrator has a new certificate", serial=issued.serial, ends=said(issued.not_after_us))

    def _is_good(self, profile: Profile) -> bool:
        if profile.key is None or profile.ca != self._authorities.info().certificate:
            return False
        try:
            certificate = x509.load_pem_x509_certificate((profile.certificate or "").encode())
            self._authorities.principal(certificate.public_bytes(Encoding.DER))
        except (ValueError, Unauthenticated):
            return False
        return not self._ends_soon(certificate)

    def announce(self, url: str) -> None:
        """The doors are open: the administrator's profile leads here."""
        self._url = url
        self._write_admin()

    def _write_admin(self) -> None:
        if self._admin is not None and self._url is not None:
            self._files.write_admin(msgspec.structs.replace(self._admin, url=self._url))


def names_of(hosts: Iterable[str], configured: str | None) -> list[str]:
    """By which clients may reach this node: its doors' hosts, the machine's name, and what the settings say.

    Raises `InvalidArgument` for what is no name in the settings.
    """
    wanted = [name.strip() for name in (configured or "").split(",") if name.strip()]
    try:
        host_names(wanted)
    except InvalidArgument as error:
        raise InvalidArgument("security.certificates.names", error.problem) from None
    found = [host for host in hosts if not is_wildcard(host)]
    return [*found, *_machine_name(), *wanted]


def _machine_name() -> list[str]:
    name = socket.gethostname()
    try:
        host_names([name])
    except InvalidArgument:
        return []  # A machine may be called what no certificate can be for.
    return [name]
