"""Files with schemas and payloads, as commands take them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from sealane.cli.group import EXIT_USAGE, fail

if TYPE_CHECKING:
    from sealane.schemas import Format

STANDARD_INPUT = "-"
_BY_ENDING: dict[str, Format] = {
    ".json": "json",
    ".avsc": "avro",
    ".proto": "protobuf",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
}


def schema_in(file: str, format: str | None) -> tuple[str, Format]:
    """The schema in a file, as it is sent, and its format: what is given, or what the file's name says."""
    known = cast("Format | None", format) or _BY_ENDING.get(Path(file).suffix.lower())
    if known is None:
        raise typer.BadParameter(f"the name {file!r} does not say of which format the schema is: give --format")
    data = content(file)
    if known == "arrow":
        return _arrow_text(file, data), known
    try:
        return data.decode(), known
    except UnicodeDecodeError:
        fail(f"{file}: it is no text in UTF-8", EXIT_USAGE)


def content(file: str) -> bytes:
    return sys.stdin.buffer.read() if file == STANDARD_INPUT else Path(file).read_bytes()


def payloads_in(file: str, *, lines: bool) -> Iterator[bytes]:
    """All of a file as one payload, or each of its lines."""
    data = content(file)
    if not lines:
        yield data
        return
    yield from data.removesuffix(b"\n").split(b"\n") if data else ()


def readable(text: str, format: str) -> str:
    """A schema for people."""
    return str(_arrow_schema(text)) if format == "arrow" else text


def _arrow_text(file: str, data: bytes) -> str:
    """The schema of an Arrow file, a stream, or a schema message alone, in base64."""
    import base64

    import pyarrow as pa

    try:
        is_file = data.startswith(b"ARROW1")
        schema = pa.ipc.open_file(data).schema if is_file else pa.ipc.read_schema(pa.py_buffer(data))
    except (pa.ArrowException, OSError, ValueError):
        fail(f"{file}: it is neither an Arrow file nor a stream, nor a schema alone", EXIT_USAGE)
    return base64.b64encode(schema.remove_metadata().serialize()).decode()


def _arrow_schema(text: str) -> object:
    import base64

    import pyarrow as pa

    return pa.ipc.read_schema(pa.py_buffer(base64.b64decode(text)))
