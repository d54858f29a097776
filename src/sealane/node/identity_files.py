"""Files of a data directory by which others verify what the node's authorities have signed, or taken back."""

from __future__ import annotations

from pathlib import Path

from sealane.whole_files import PUBLIC, replace_file

IDENTITY_DIRECTORY = "identity"
AUTHORITY_FILE = "ca.crt"
REVOCATION_LIST_FILE = "ca.crl"


def write_crl(directory: Path, pem: bytes) -> Path:
    """Write the revocation lists of a data directory's authorities. Returns where they are."""
    path = directory / IDENTITY_DIRECTORY / REVOCATION_LIST_FILE
    replace_file(path, pem, PUBLIC)
    return path
