"""Whom webhooks trust to be the receiver: whoever the system's authorities vouch for, and those of a file beside."""

from __future__ import annotations

import ssl
from pathlib import Path

from sealane.errors import InvalidSettings


def receivers_context(ca_file: str | None) -> ssl.SSLContext:
    """Raises `InvalidSettings` for a file without authorities."""
    context = ssl.create_default_context()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if ca_file is not None:
        try:
            context.load_verify_locations(cafile=Path(ca_file))
        except (OSError, ssl.SSLError) as error:
            problem = f"webhooks.ca is {ca_file!r}, which cannot be read as PEM certificates of authorities: {error}"
            raise InvalidSettings([problem]) from None
    return context
