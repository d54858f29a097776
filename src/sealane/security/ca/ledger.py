"""The ledger: every certificate that was issued here, by serial, fingerprint and name."""

from __future__ import annotations

import re
from collections.abc import Iterator

from sealane.errors import CertificateNotFound
from sealane.security.ca.moments import DAY_US
from sealane.security.ca.names import SERIAL_BYTES
from sealane.security.ca.records import CertificateRecord
from sealane.security.records import Vault

KEPT_US = 400 * DAY_US
"""How long a certificate is remembered after its end: as long as the audit log speaks of it."""

_SERIAL = re.compile(r"[0-9a-fA-F]{1,40}")


class Ledger:
    """All in memory; changes are durable on return."""

    def __init__(self, vault: Vault) -> None:
        self._records = vault.records("certificate", CertificateRecord)
        self._by_fingerprint: dict[str, str] = {}
        self._by_name: dict[str, dict[str, None]] = {}
        self._revoked: set[str] = set()
        """Credentials."""
        self._compromised: set[str] = set()
        """Hashes of keys."""

    async def load(self) -> None:
        await self._records.load()
        for _, record in self._records:
            self._note(record)

    def __iter__(self) -> Iterator[CertificateRecord]:
        return (record for _, record in self._records)

    def get(self, serial: str) -> CertificateRecord | None:
        return self._records.get(serial)

    def by_fingerprint(self, fingerprint: str) -> CertificateRecord | None:
        serial = self._by_fingerprint.get(fingerprint)
        return None if serial is None else self._records.get(serial)

    def of(self, name: str) -> list[CertificateRecord]:
        """All certificates of this name, the oldest first."""
        found = (self._records.get(serial) for serial in self._by_name.get(name, ()))
        return sorted((record for record in found if record is not None), key=lambda record: record.issued_us)

    def find(self, reference: str) -> list[CertificateRecord]:
        """By serial or fingerprint (hex, colons allowed) that one, by name all of it. Raises `CertificateNotFound`."""
        digits = reference.replace(":", "").lower()
        one = self.by_fingerprint(digits)
        if one is None and _SERIAL.fullmatch(digits):
            # Other tools leave zeros at the front out.
            one = self.get(digits.rjust(2 * SERIAL_BYTES, "0"))
        found = self.of(reference) if one is None else [one]
        if not found:
            raise CertificateNotFound(reference, "`sealane ca list` has names and serials")
        return found

    def is_revoked(self, credential: str) -> bool:
        return credential in self._revoked

    def is_compromised(self, key_hash: str) -> bool:
        """Whether a certificate with this key was revoked since someone else has, or may have, the key."""
        return key_hash in self._compromised

    async def put(self, record: CertificateRecord) -> None:
        await self._records.put(record.serial, record)
        self._note(record)

    async def forget_old(self, now_us: int) -> int:
        """Let go of those that ended long ago, and say how many. Compromised keys are remembered for ever."""
        old = [
            record
            for record in self
            if record.not_after_us + KEPT_US < now_us and not self.is_compromised(record.key_hash)
        ]
        for record in old:
            await self._records.remove(record.serial)
            self._by_fingerprint.pop(record.fingerprint, None)
            self._by_name[record.name].pop(record.serial, None)
            self._revoked.discard(record.credential)
        return len(old)

    def _note(self, record: CertificateRecord) -> None:
        self._by_fingerprint[record.fingerprint] = record.serial
        self._by_name.setdefault(record.name, {})[record.serial] = None
        if record.revoked_us is not None:
            self._revoked.add(record.credential)
            if record.reason == "key-compromise":
                self._compromised.add(record.key_hash)
