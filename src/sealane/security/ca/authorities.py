"""All that a node does with certificates: its authorities, what they issue, renew and revoke, and who comes in."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

from sealane.errors import AlreadyExists, InvalidArgument, RenewalTooEarly
from sealane.log import get_log
from sealane.message import Limits, check_name
from sealane.security.accounts import Accounts, domain_of
from sealane.security.ca.authority import Usage
from sealane.security.ca.issued import AuthorityInfo, Issued
from sealane.security.ca.issuing import Issuing
from sealane.security.ca.ledger import Ledger
from sealane.security.ca.moments import DAY_US, said
from sealane.security.ca.names import check_common_name, fingerprint_of, host_names
from sealane.security.ca.own_authorities import OwnAuthorities
from sealane.security.ca.presented import identify
from sealane.security.ca.records import ROOT, CertificateRecord, Reason, authority_of_domain
from sealane.security.ca.revocations import entries
from sealane.security.principals import Principal
from sealane.security.records import Vault
from sealane.security.settings import CertificateSettings, KeyType

log = get_log("sealane.security.ca")

REVOCATION_LIST_DAYS = 7
"""After this long those who read a list must have a newer one; the node writes one each day, and at each change."""


class Authorities:
    """Belongs to one event loop. Everything is answered from memory; changes are durable on return."""

    def __init__(self, vault: Vault, accounts: Accounts, settings: CertificateSettings) -> None:
        self.changed: list[Callable[[], None]] = []
        """Told when an authority was made, a certificate revoked or a server's replaced, and once a day."""
        self.ledger = Ledger(vault)
        self._own = OwnAuthorities(vault)
        self._issuing = Issuing(self._own, self.ledger, settings.key_type, vault.clock, vault.entropy)
        self._accounts = accounts
        self._settings = settings
        self._clock = vault.clock
        self._changing = asyncio.Lock()
        """Held from reading a record to writing it: nothing brings a certificate back that was revoked in between."""
        self._list_number = 0

    async def load(self) -> None:
        await self._own.load()
        await self.ledger.load()

    def tell_changed(self) -> None:
        """What was changed is changed, whatever becomes of those who are told."""
        for told in self.changed:
            try:
                told()
            except Exception as error:
                log.error("a change of certificates was not taken in everywhere", exc_info=error)

    # --- authorities --------------------------------------------------------------------------------------------------

    @property
    def ready(self) -> bool:
        """Whether there is a root authority."""
        return ROOT in self._own

    async def init(self, *, domain: str | None = None, key_type: KeyType | None = None) -> AuthorityInfo:
        """Make the root authority, or one of a domain's own. Raises `AlreadyExists`."""
        made = await self._own.make(domain, key_type or self._settings.key_type, self._settings.authority_days)
        self.tell_changed()
        return made

    def all(self) -> list[AuthorityInfo]:
        """The root first."""
        return [self._own.info(name) for name in self._own]

    def info(self, domain: str | None = None) -> AuthorityInfo:
        """The root authority, or a domain's own. Raises `AuthorityNotFound`."""
        return self._own.info(_name(domain))

    def trusted(self) -> str:
        """Every authority (PEM): what TLS verifies clients by."""
        return "".join(authority.pem for authority in self._own.opened())

    # --- issuing ------------------------------------------------------------------------------------------------------

    async def issue(
        self,
        name: str,
        *,
        usage: Usage = "client",
        names: Sequence[str] = (),
        days: float | None = None,
        csr: str | None = None,
        roles: Iterable[str] | None = None,
        replaces: str | None = None,
    ) -> Issued:
        """A certificate for an account, which is made if there is none, or for a server that is reached by `names`.

        It is valid for `days`, or until its authority ends. With a request (`csr`, PEM) no key is made. It `replaces`
        another one (PEM) of the same holder, if that was issued here; a server's newest replaces those before it.
        """
        check_common_name(name)
        wanted = None if roles is None else frozenset(roles)
        if usage == "client":
            if names:
                raise InvalidArgument("names", "are for servers; a client's certificate is for its account")
            domain = self._domain(name, wanted)
        else:
            if wanted is not None:
                raise InvalidArgument("roles", "are for accounts; a server's certificate has none")
            host_names((name, *names))
            domain = ""
        lasting = self._settings.days if days is None else days
        issued, record = await self._issuing.sign(name, domain, usage, names=tuple(names), days=lasting, csr=csr)
        async with self._changing:
            if usage == "client":
                await self._accounts.ensure(name, domain=domain, roles=wanted)
            await self._keep(record)
            if replaces is not None:
                await self._replace(self.ledger.by_fingerprint(fingerprint_of(replaces)), record)
        return issued

    def _domain(self, name: str, roles: frozenset[str] | None) -> str:
        """Of the account that is there, or would be made. Raises unless it may have a certificate, and these roles."""
        account = self._accounts.find(name)
        if account is None:
            check_name("domain", domain_of(name), Limits())
            return domain_of(name)
        if account.disabled:
            raise InvalidArgument("name", f"the account {name!r} is disabled; enable it first")
        if roles is not None and roles != account.roles:
            has = ", ".join(sorted(account.roles)) or "none"
            raise AlreadyExists("account", name, f"its roles are {has}; change them first, or leave them out here")
        return account.domain

    async def _keep(self, record: CertificateRecord) -> None:
        """Before anybody is given the certificate: what is not in the ledger is refused."""
        account = self._accounts.find(record.name)
        if record.usage == "client" and account is not None:
            # Whoever has a certificate of an earlier account of that name is told apart by this.
            issued_us = max(record.issued_us, account.created_us)
            record = msgspec.structs.replace(record, issued_us=issued_us)
        await self.ledger.put(record)
        if record.usage == "server":
            for older in self.ledger.of(record.name):
                await self._replace(older, record)
            self.tell_changed()

    async def _replace(self, old: CertificateRecord | None, new: CertificateRecord) -> None:
        """Note that nobody has to renew the old one any more. Nothing happens if it is somebody else's."""
        if old is None or old.serial == new.serial or old.replaced_by is not None:
            return
        if (old.name, old.usage) == (new.name, new.usage):
            await self.ledger.put(msgspec.structs.replace(old, replaced_by=new.serial))

    # --- renewing -----------------------------------------------------------------------------------------------------

    async def renew(
        self,
        reference: str,
        *,
        csr: str | None = None,
        days: float | None = None,
        force: bool = False,
        revoke: bool = False,
    ) -> Issued:
        """Another certificate for the holder of one, for as long as that was for unless `days` says otherwise.

        The old one stays valid to its end, so that its holder can change over at leisure; with `revoke` it ends now.
        Raises `RenewalTooEarly` unless it ends within `renew_days`, or `force` is given, and `AccountNotFound`.
        """
        old = self.renewable(reference)
        from_us = old.not_after_us - self._settings.renew_days * DAY_US
        if self._clock() < from_us and not force:
            raise RenewalTooEarly(old.name, old.serial, said(from_us))
        # An account that was removed does not come back by this.
        domain = "" if old.usage == "server" else self._domain(self._accounts.get(old.name).name, None)
        lasting = (old.not_after_us - old.issued_us) / DAY_US if days is None else days
        issued, record = await self._issuing.sign(old.name, domain, old.usage, names=old.names, days=lasting, csr=csr)
        async with self._changing:
            # It may have been revoked, or renewed by someone else, while this one was signed.
            old = self.renewable(old.serial)
            await self._keep(record)
            await self._replace(self.ledger.get(old.serial), record)
        if revoke:
            await self.revoke(old.serial, "superseded")
        return issued

    def renewable(self, reference: str) -> CertificateRecord:
        """The one that is meant. Raises `CertificateNotFound`, and `InvalidArgument` if it cannot be renewed."""
        found = self.ledger.find(reference)
        current = [record for record in found if record.revoked_us is None and record.replaced_by is None]
        if len(current) > 1:
            serials = ", ".join(record.serial for record in current)
            raise InvalidArgument("certificate", f"{reference!r} has several, say which by its serial: {serials}")
        if current:
            return current[0]
        newest = found[-1]
        if newest.revoked_us is not None:
            raise InvalidArgument("certificate", f"{newest.serial} is revoked; issue another one instead")
        raise InvalidArgument("certificate", f"{newest.serial} was renewed before, by {newest.replaced_by}")

    def unrenewed(self) -> Iterator[CertificateRecord]:
        """Valid certificates that no other one has replaced."""
        now_us = self._clock()
        return (each for each in self.ledger if each.replaced_by is None and each.state(now_us) == "valid")

    def expiring(self, days: float) -> list[CertificateRecord]:
        """Those of them that end within so many days, the one that ends first in front."""
        now_us = self._clock()
        soon = (record for record in self.unrenewed() if record.not_after_us - now_us <= days * DAY_US)
        return sorted(soon, key=lambda record: record.not_after_us)

    # --- revoking -----------------------------------------------------------------------------------------------------

    async def revoke(self, reference: str, reason: Reason = "unspecified") -> list[str]:
        """Take certificates back for good: one by its serial or fingerprint, by a name all that are not over.

        Returns their serials. Those that were revoked before stay as they were.
        """
        async with self._changing:
            now_us = self._clock()
            found = self.ledger.find(reference)
            meant = found if len(found) == 1 else [record for record in found if record.not_after_us >= now_us]
            for record in meant:
                if record.revoked_us is None:
                    await self.ledger.put(msgspec.structs.replace(record, revoked_us=now_us, reason=reason))
        self.tell_changed()
        return [record.serial for record in meant]

    def is_revoked(self, credential: str) -> bool:
        """Whether `certificate:<serial>` was revoked: cheap enough to be asked with each request."""
        return self.ledger.is_revoked(credential)

    def crl(self, domain: str | None = None) -> bytes:
        """The revocation list (PEM) of the root authority, or of a domain's own. Raises `AuthorityNotFound`."""
        name = _name(domain)
        authority = self._own.get(name)
        now_us = self._clock()
        # Greater with each list, also after a restart, without anything that would have to be kept.
        self._list_number = max(self._list_number + 1, now_us)
        revoked = entries((record for record in self.ledger if record.authority == name), now_us)
        return authority.revocation_list(revoked, number=self._list_number, now_us=now_us, days=REVOCATION_LIST_DAYS)

    def crls(self) -> bytes:
        """The lists of all authorities, one after another, the root's first."""
        return b"".join(self.crl(info.domain) for info in self.all())

    # --- coming in ----------------------------------------------------------------------------------------------------

    def principal(self, der: bytes) -> Principal:
        """Whose certificate (DER) it is. Raises `Unauthenticated`, which says what is wrong with this one."""
        return identify(der, self.ledger, self._accounts, self._own.opened, self._clock())


def _name(domain: str | None) -> str:
    return ROOT if domain is None else authority_of_domain(domain)
