"""What a schema may take: all of it comes from users, and some of it is held for as long as the node runs."""

from __future__ import annotations

from sealane.errors import InvalidSchema

SCHEMA_BYTES_MAX = 64 << 10
"""Of a schema's text: the largest that people write by hand have a third of it."""
SCHEMA_NESTING_MAX = 64
"""Lists and objects within each other in the text of a JSON Schema or an Avro schema."""
PROBLEM_CHARS_MAX = 500
"""Of what is said of a schema that is none: it repeats parts of it."""


def shortened(problem: str) -> str:
    """A problem with a schema, for people."""
    return problem if len(problem) <= PROBLEM_CHARS_MAX else problem[: PROBLEM_CHARS_MAX - 1] + "…"


def check_size(format: str, text: str) -> None:
    """Raise `InvalidSchema` for a text that is too long."""
    size = len(text.encode())
    if size > SCHEMA_BYTES_MAX:
        raise InvalidSchema(format, f"it has {size:,} bytes, the limit is {SCHEMA_BYTES_MAX:,}")
