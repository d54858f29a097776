""".proto text becomes descriptors in a process of its own, which has little time and room, and sees nothing but it.

The only other files that it can import are those of google/protobuf that come with the compiler.
"""

from __future__ import annotations

import asyncio
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from sealane.errors import InvalidSchema, MissingExtra, Unavailable
from sealane.schemas import Definition
from sealane.schemas.limits import check_size
from sealane.schemas.protobuf.protobuf_schema import COMPILED_BYTES_MAX

COMPILE_SECONDS_MAX = 10.0
"""Compiling a schema of the largest size takes a fifth of a second; a machine that is busy may take longer."""
COMPILE_MEMORY_BYTES_MAX = 512 << 20
"""Address space of the compiler: ten times what it takes."""
COMPILES_WAITING_MAX = 16
"""Texts that wait for their turn: one is compiled at a time."""
_DIAGNOSTIC_BYTES = 2_000
_IMPORTS = "google/protobuf/"
_SOURCE, _COMPILED = "schema.proto", "schema.pb"

_PROGRAM = """\
import resource, sys
memory, seconds, size = map(int, sys.argv[1:4])
for limit, most in (("AS", memory), ("CPU", seconds), ("FSIZE", size), ("CORE", 0)):
    try:
        resource.setrlimit(getattr(resource, "RLIMIT_" + limit), (most, most))
    except (AttributeError, OSError, ValueError):
        pass  # Not every system has each of them; how long it may take is seen to from outside too.
from grpc_tools import protoc
sys.exit(protoc.main(["protoc", *sys.argv[4:]]))
"""


class Compiler:
    """Compiles one text after the other, however many ask for it."""

    def __init__(self) -> None:
        self._alone = asyncio.Lock()
        self._waiting = 0

    async def compiled(self, text: str, message: str | None) -> Definition:
        """As `compiled`. Raises `Unavailable` if too many are waiting."""
        if self._waiting >= COMPILES_WAITING_MAX:
            raise Unavailable(f"{self._waiting} Protobuf schemas are waiting to be compiled: try again in a moment")
        self._waiting += 1
        try:
            async with self._alone:
                return await compiled(text, message)
        finally:
            self._waiting -= 1


async def compiled(text: str, message: str | None) -> Definition:
    """The text with its descriptors. Raises `InvalidSchema` with what the compiler says, and `MissingExtra`."""
    check_size("protobuf", text)
    tools = find_spec("grpc_tools")
    if tools is None or not tools.submodule_search_locations:
        raise MissingExtra("Protobuf schemas", "grpcio-tools", "grpc")
    known = Path(tools.submodule_search_locations[0]) / "_proto"
    with TemporaryDirectory(prefix="sealane-proto-") as directory:
        place = Path(directory)
        (place / _SOURCE).write_text(text, encoding="utf-8")
        await _compile(place, known)
        try:
            found = (place / _COMPILED).read_bytes()
        except FileNotFoundError:
            raise InvalidSchema("protobuf", "the compiler made nothing of it") from None
    definition = Definition("protobuf", text, message, found)
    _check_imports(found)
    return definition


async def _compile(place: Path, known: Path) -> None:
    limits = COMPILE_MEMORY_BYTES_MAX, int(COMPILE_SECONDS_MAX), COMPILED_BYTES_MAX
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        # Nothing is loaded from where the node happens to be.
        *("-P", "-c", _PROGRAM, *map(str, limits)),
        *(f"--proto_path={place}", f"--proto_path={known}", "--include_imports"),
        *(f"--descriptor_set_out={place / _COMPILED}", _SOURCE),
        stdin=DEVNULL,
        stdout=DEVNULL,
        stderr=PIPE,
        cwd=place,
        env=_environment(),
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(COMPILE_SECONDS_MAX):
            said = await _last_words(process)
            status = await process.wait()
    except TimeoutError:
        raise InvalidSchema("protobuf", f"compiling it takes longer than {COMPILE_SECONDS_MAX:g} s") from None
    finally:
        await _end(process)
    if status:
        # What it says of the text begins with the place in it; the rest is about the compiler itself.
        lines = said.decode(errors="replace").replace(f"{place}{os.sep}", "").splitlines()
        problem = "; ".join(line.strip() for line in lines if line.startswith(_SOURCE))
        raise InvalidSchema("protobuf", problem or "the compiler failed, and does not say why")


async def _last_words(process: Process) -> bytes:
    assert process.stderr is not None
    said = b""
    while some := await process.stderr.read(_DIAGNOSTIC_BYTES):
        said = (said + some)[:_DIAGNOSTIC_BYTES]
    return said


async def _end(process: Process) -> None:
    if process.returncode is None:
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await process.wait()


def _environment() -> dict[str, str]:
    """As little as the interpreter needs to find the compiler."""
    names = ("PATH", "PYTHONPATH", "PYTHONHOME", "LANG", "TMPDIR")
    return {name: os.environ[name] for name in names if name in os.environ}


def _check_imports(found: bytes) -> None:
    """The compiler could not have read others; if it did, nobody is to see them."""
    from sealane.schemas.extras import protobuf

    descriptors, _, _ = protobuf()
    for file in descriptors.FileDescriptorSet.FromString(found).file:
        if file.name != _SOURCE and not file.name.startswith(_IMPORTS):
            raise InvalidSchema("protobuf", f"it imports {file.name!r}; only {_IMPORTS}… can be imported")
