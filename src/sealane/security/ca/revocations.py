"""Revocation lists (CRLs): for those who are told of revocations by a file. The node itself asks its ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from cryptography import x509

from sealane.security.ca.moments import to_utc, whole_seconds
from sealane.security.ca.records import CertificateRecord, Reason

_FLAGS: dict[Reason, x509.ReasonFlags] = {
    "key-compromise": x509.ReasonFlags.key_compromise,
    "affiliation-changed": x509.ReasonFlags.affiliation_changed,
    "superseded": x509.ReasonFlags.superseded,
    "cessation-of-operation": x509.ReasonFlags.cessation_of_operation,
    "privilege-withdrawn": x509.ReasonFlags.privilege_withdrawn,
}
"""Without `unspecified`, which a list leaves out."""


def entries(records: Iterable[CertificateRecord], now_us: int) -> Iterator[x509.RevokedCertificate]:
    """What a list says of those that are revoked and would be valid otherwise."""
    for record in records:
        if record.revoked_us is None or record.not_after_us < now_us:
            continue
        builder = (
            x509.RevokedCertificateBuilder()
            .serial_number(int(record.serial, 16))
            .revocation_date(to_utc(whole_seconds(record.revoked_us)))
        )
        flag = _FLAGS.get(record.reason or "unspecified")
        if flag is not None:
            builder = builder.add_extension(x509.CRLReason(flag), critical=False)
        yield builder.build()
