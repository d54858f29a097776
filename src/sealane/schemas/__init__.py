"""Schemas: what payloads of a topic look like, whether a payload does, and whether one schema may follow another.

Nothing here does I/O: no schema is fetched from anywhere, and .proto text is compiled elsewhere (`sealane.node`). The
libraries that read schemas are loaded when a schema of their format is first used.
"""

from __future__ import annotations

from sealane.schemas.compatibility import MODES, Mode, incompatibilities
from sealane.schemas.formats import FORMATS, Definition, Format, definition_shown, open_schema
from sealane.schemas.schema import Misfit, Problem, Schema

__all__ = [
    "FORMATS",
    "MODES",
    "Definition",
    "Format",
    "Misfit",
    "Mode",
    "Problem",
    "Schema",
    "definition_shown",
    "incompatibilities",
    "open_schema",
]
