"""Why TLS came to nothing, in words that tell what to do about it."""

from __future__ import annotations

import ssl
from collections.abc import Sequence

from sealane.client.remote.addresses import Endpoint
from sealane.errors import InvalidArgument, SealaneError, Unauthenticated, Unavailable, UntrustedNode

# As OpenSSL numbers them (x509_vfy.h).
_NOT_YET_VALID, _EXPIRED = 9, 10
_NAME_MISMATCH, _ADDRESS_MISMATCH = 62, 64
_UNKNOWN_ISSUER = frozenset({2, 18, 19, 20, 21, 24})

NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST", "PACKET_LENGTH_TOO_LONG"})
"""What OpenSSL says of an answer that is no TLS at all."""
_OLD_TLS = frozenset({"TLSV1_ALERT_PROTOCOL_VERSION", "UNSUPPORTED_PROTOCOL"})
_ALERT = "_ALERT_"
_CERTIFICATE_ALERTS = {
    "CERTIFICATE_EXPIRED": "it has expired, or is not valid yet",
    "CERTIFICATE_REVOKED": "it was revoked",
    "UNKNOWN_CA": "it is not of an authority that the node trusts",
    "CERTIFICATE_REQUIRED": "the node wants one, and none was shown",
    "BAD_CERTIFICATE": "it is not a client's certificate of that node",
    "UNSUPPORTED_CERTIFICATE": "it is not for clients",
    "CERTIFICATE_UNKNOWN": "it is not a client's certificate of that node",
    "DECRYPT_ERROR": "its key does not fit",
}


def wrong_name(error: ssl.SSLCertVerificationError) -> bool:
    return error.verify_code in (_NAME_MISMATCH, _ADDRESS_MISMATCH)


def untrusted(
    endpoint: Endpoint, error: ssl.SSLCertVerificationError, has_own_trust: bool, names: Sequence[str] = ()
) -> UntrustedNode:
    """`names` are those that the certificate is for, where that is known."""
    address = str(endpoint)
    if wrong_name(error):
        known = f"it is for {', '.join(names)}" if names else "it is for other names"
        hint = f"use one of these, or add it to the node's setting security.certificates.names ({endpoint.name})"
        return UntrustedNode(address, f"its certificate is not for {endpoint.name!r}, {known}", hint)
    if error.verify_code == _EXPIRED:
        hint = "restart the node, which renews its own, or look at both machines' clocks"
        return UntrustedNode(address, "its certificate has expired", hint)
    if error.verify_code == _NOT_YET_VALID:
        return UntrustedNode(address, "its certificate is not valid yet", "look at both machines' clocks")
    if error.verify_code in _UNKNOWN_ISSUER:
        whom = "of the given authority (ca)" if has_own_trust else "of an authority that this machine knows"
        hint = "give the node's ca.crt as ca=, add a profile by `sealane profile add`, or use `sealane login`"
        return UntrustedNode(address, f"its certificate is not {whom}", hint)
    return UntrustedNode(
        address, f"its certificate breaks the rules: {error.verify_message}", "let the node issue itself a new one"
    )


def is_alert(error: ssl.SSLError) -> bool:
    """Whether it is something that the node said, not something that was found here."""
    return _ALERT in (error.reason or "")


def refused_by_node(endpoint: Endpoint, error: ssl.SSLError, own_problem: str | None = None) -> SealaneError:
    """The node was reached, and TLS with it is not to be. `own_problem` is what is wrong with the client's own
    certificate, as far as is known here.
    """
    reason = error.reason or ""
    if reason in NOT_TLS:
        problem = f"the node at {endpoint} does not speak TLS; if it runs with --insecure, write sealane://"
        return InvalidArgument("url", problem)
    if reason in _OLD_TLS:
        return InvalidArgument("url", f"what answers at {endpoint} does not speak TLS 1.3, so it is no Sealane node")
    said = reason.partition(_ALERT)[2]
    if said in _CERTIFICATE_ALERTS:
        why = own_problem or _CERTIFICATE_ALERTS[said]
        hint = "show one that `sealane ca issue` has made there, or renew it by `sealane ca renew`"
        return Unauthenticated(f"the node at {endpoint} does not take this client's certificate: {why}; {hint}")
    return Unavailable(f"TLS with {endpoint} failed: {reason.replace('_', ' ').lower() or 'for no stated reason'}")
