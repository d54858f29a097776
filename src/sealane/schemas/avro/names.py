"""Names of Avro's records, enums and fixed types, which may be in a namespace."""

from __future__ import annotations


def full_name(name: str, given: str | None, around: str) -> str:
    """The name with its namespace: its own if it has dots, else the one given with it, else that of what is around."""
    if "." in name:
        return name.removeprefix(".")
    namespace = around if given is None else given
    return f"{namespace}.{name}" if namespace else name
