"""What the library compiles: nothing is fetched for it, and no payload can make a regular expression take long."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import msgspec

from sealane.schemas.extras import jsonschema
from sealane.schemas.json.document import refused
from sealane.schemas.paths import path_of

PATTERN_BYTES_MAX = 1 << 20
"""What one regular expression may take once it is compiled."""


def compiled(root: Any) -> Any:
    """A validator of the document. Raises `InvalidSchema`."""
    library = jsonschema()
    try:
        return library.validator_for(root, **_options(library))
    except (library.ValidationError, library.ReferencingError, ValueError) as error:
        raise refused(_told(error)) from None


@lru_cache(maxsize=16)
def parts(document: bytes) -> Any:
    """Validators of all parts of a document, by their pointers; None if the library does not take it to parts."""
    library = jsonschema()
    try:
        return library.validator_map_for(msgspec.json.decode(document), **_options(library))
    except (library.ValidationError, library.ReferencingError, ValueError):
        return None


@lru_cache(maxsize=256)
def alone(keyword: str, said: bytes, draft: str) -> Any:
    """A validator of one keyword that means the same by itself."""
    library = jsonschema()
    return library.validator_for({"$schema": draft, keyword: msgspec.json.decode(said)}, **_options(library))


def _options(library: Any) -> dict[str, Any]:
    # This engine has no backtracking, and so neither look-around nor back-references.
    return {"offline": True, "pattern_options": library.RegexOptions(size_limit=PATTERN_BYTES_MAX)}


def _told(error: Exception) -> str:
    """What the library says, without the part of the schema that it repeats."""
    text = str(getattr(error, "message", None) or error).partition("\n")[0]
    path = getattr(error, "instance_path", None)
    return f"at {path_of(path)}: {text}" if path else text
