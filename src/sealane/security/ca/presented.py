"""A certificate that someone came in by: whose it is, or what is wrong with it.

A certificate that was issued here is known by its fingerprint: what is shown is, byte for byte, what was issued, so no
signature has to be checked again. Signatures are looked at only to tell the holder of a stranger what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cryptography import x509

from sealane.errors import Unauthenticated
from sealane.security.accounts import Account, Accounts
from sealane.security.ca.authority import Authority
from sealane.security.ca.ledger import Ledger
from sealane.security.ca.moments import said
from sealane.security.ca.names import fingerprint
from sealane.security.ca.records import CertificateRecord
from sealane.security.foreign_bytes import UNREADABLE
from sealane.security.principals import Principal

_NEXT = "ask an administrator of the node for another one"


def identify(
    der: bytes, ledger: Ledger, accounts: Accounts, authorities: Callable[[], Iterable[Authority]], now_us: int
) -> Principal:
    """Raises `Unauthenticated`, which tells of this certificate and of nothing else."""
    shown = fingerprint(der)
    record = ledger.by_fingerprint(shown)
    if record is None:
        raise Unauthenticated(_stranger(der, authorities()))
    problem = _problem(record, accounts, now_us)
    if problem is not None:
        raise Unauthenticated(f"this certificate ({record.serial}) {problem}; {_NEXT}")
    return accounts.principal(
        record.name, "certificate", record.credential, client_id=shown, expires_us=record.not_after_us
    )


def _problem(record: CertificateRecord, accounts: Accounts, now_us: int) -> str | None:
    if record.revoked_us is not None:
        return f"was revoked on {said(record.revoked_us)}"
    if now_us < record.not_before_us:
        return f"is not valid before {said(record.not_before_us)}, which is still to come: check the clocks"
    if now_us > record.not_after_us:
        return f"is expired since {said(record.not_after_us)}"
    if record.usage != "client":
        return "is a server's and not good for coming in as a client"
    return _mismatch(record, accounts.find(record.name))


def _mismatch(record: CertificateRecord, account: Account | None) -> str | None:
    """Whether the account is another one than it was for."""
    if account is None:
        return None
    # A domain's authority signs for accounts of that domain alone; an account may have been made anew in another one.
    if account.domain != record.domain:
        return f"is for the domain {record.domain!r}, where its account is not: wrong domain"
    if account.created_us > record.issued_us:
        return "is older than its account, and was issued for an earlier one of that name"
    return None


def _stranger(der: bytes, authorities: Iterable[Authority]) -> str:
    try:
        certificate = x509.load_der_x509_certificate(der)
    except UNREADABLE:
        return "what was shown is not an X.509 certificate"
    if any(authority.has_issued(certificate) for authority in authorities):
        return f"this certificate is by an authority of this node, which has no record of it; {_NEXT}"
    return f"this certificate is not by an authority of this node; {_NEXT}"
