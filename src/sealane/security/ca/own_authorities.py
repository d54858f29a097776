"""The authorities that this node holds the keys of: its own, and one for each domain that wants one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from sealane.errors import AlreadyExists, AuthorityNotFound
from sealane.message import Limits, check_name
from sealane.security.ca.authority import Authority, Usage
from sealane.security.ca.issued import AuthorityInfo
from sealane.security.ca.moments import to_us
from sealane.security.ca.names import fingerprint
from sealane.security.ca.records import ROOT, AuthorityRecord, authority_of_domain
from sealane.security.records import Vault
from sealane.security.settings import KeyType

_UNIQUE_BYTES = 4
"""In an authority's name: two nodes' authorities are not called the same."""


class OwnAuthorities:
    """By name: `root`, or `domain:` and the domain. A new one is durable on return."""

    def __init__(self, vault: Vault) -> None:
        self._records = vault.records("authority", AuthorityRecord)
        self._opened: dict[str, Authority] = {}
        self._clock = vault.clock
        self._entropy = vault.entropy
        self._making = asyncio.Lock()

    async def load(self) -> None:
        await self._records.load()
        for name, record in self._records:
            self._opened[name] = Authority.read(record.private_key, record.certificate)

    def __contains__(self, name: str) -> bool:
        return name in self._opened

    def __iter__(self) -> Iterator[str]:
        """Their names, the root's first."""
        return iter(sorted(self._opened, key=lambda name: (name != ROOT, name)))

    def opened(self) -> list[Authority]:
        return [self._opened[name] for name in self]

    def get(self, name: str) -> Authority:
        """Raises `AuthorityNotFound`."""
        try:
            return self._opened[name]
        except KeyError:
            option = "" if name == ROOT else f" --domain {name.partition(':')[2]}"
            raise AuthorityNotFound(name, f"make it with `sealane ca init{option}`") from None

    def issuer(self, domain: str, usage: Usage) -> str:
        """Who signs for clients of a domain: its own authority if it has one. Servers are the root's."""
        own = authority_of_domain(domain)
        return own if usage == "client" and own in self._opened else ROOT

    def info(self, name: str) -> AuthorityInfo:
        """Raises `AuthorityNotFound`."""
        authority = self.get(name)
        record = self._records.get(name)
        assert record is not None, "what is open was kept"
        return AuthorityInfo(
            name,
            record.domain,
            record.key_type,
            authority.pem,
            fingerprint(record.certificate),
            to_us(authority.certificate.not_valid_before_utc),
            authority.not_after_us,
        )

    async def make(self, domain: str | None, key_type: KeyType, days: float) -> AuthorityInfo:
        """Raises `AlreadyExists`: a second one would not know what the first has signed."""
        name = ROOT
        if domain is not None:
            check_name("domain", domain, Limits())
            name = authority_of_domain(domain)
        async with self._making:
            if name in self._opened:
                raise AlreadyExists("authority", name, "`sealane ca show` has its certificate")
            now_us = self._clock()
            kind, unique = ("root" if domain is None else "domain"), self._entropy(_UNIQUE_BYTES).hex()
            authority = await asyncio.to_thread(
                Authority.create,
                f"Sealane {kind} authority {unique}",
                key_type=key_type,
                days=days,
                now_us=now_us,
                entropy=self._entropy,
            )
            key, certificate = authority.written()
            await self._records.put(name, AuthorityRecord(name, domain, key_type, certificate, key, now_us))
            self._opened[name] = authority
        return self.info(name)
