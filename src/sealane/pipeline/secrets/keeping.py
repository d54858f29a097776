"""Which key file a lake has, and that it is the right one."""

from __future__ import annotations

from pathlib import Path

from sealane.errors import InvalidArgument, KeyUnavailable
from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.secrets.lake_keys import LakeKeys
from sealane.pipeline.settings import PipelineSettings
from sealane.whole_files import PUBLIC, replace_file

FILE = "lake.keys"
CHECK_FILE = "keys.check"
"""In the lake: by which keys it is written. It opens nothing."""


def keys_path(settings: PipelineSettings) -> Path:
    """Where the settings say, or in the node's data directory, or, where there is none, beside the lake."""
    return settings.keys or (settings.data or settings.lake.absolute().parent) / FILE


def keys_of(lake: Lake, path: Path) -> LakeKeys:
    """The keys of a lake, made on first use.

    Once the lake knows its keys, a missing or different file is `KeyUnavailable`, never a new key: what was sealed
    before would be unreadable, and numbers would have other hashes, without anyone being told.
    """
    if path.absolute().is_relative_to(lake.root):
        raise InvalidArgument(
            "pipeline.keys", f"{path} is within the lake, whose readers must not have it; keep it elsewhere"
        )
    known_path = lake.root / CHECK_FILE
    known = known_path.read_text(encoding="ascii").strip() if known_path.exists() else None
    if known is not None and not path.exists():
        raise KeyUnavailable(f"the lake {lake.root} has keys, and {path} is not there: restore it from a copy")
    keys = LakeKeys.open_or_make(path)
    if known is None:
        replace_file(known_path, f"{keys.check}\n".encode(), PUBLIC)
    elif known != keys.check:
        raise KeyUnavailable(f"{path} has the keys of another lake than {lake.root}: restore the right one from a copy")
    return keys
