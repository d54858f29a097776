"""What `cryptography` raises at certificates, requests and keys that somebody else has written."""

from __future__ import annotations

from cryptography.exceptions import InternalError, UnsupportedAlgorithm
from cryptography.x509 import InvalidVersion

UNREADABLE = (ValueError, UnsupportedAlgorithm, InvalidVersion, InternalError)
"""A version that there is not is no `ValueError`, and neither is a key of X448 that is too short."""
