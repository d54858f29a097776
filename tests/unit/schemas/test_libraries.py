"""The libraries that read schemas are loaded when they are needed, and asked for by name when they are missing."""

from __future__ import annotations

import subprocess
import sys

import pytest

from sealane.errors import MissingExtra
from sealane.schemas import Definition, open_schema

HEAVY = ("jsonschema_rs", "avro", "fastavro", "google.protobuf", "grpc_tools")


@pytest.mark.parametrize(
    ("definition", "module", "extra"),
    [
        (Definition("json", "true"), "jsonschema_rs", "server"),
        (Definition("avro", '"string"'), "avro.schema", "server"),
        (Definition("protobuf", "", "M", b""), "google.protobuf", "grpc"),
    ],
)
def test_a_library_that_is_missing_is_named_with_what_brings_it(
    monkeypatch: pytest.MonkeyPatch, definition: Definition, module: str, extra: str
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingExtra) as missing:
        open_schema(definition)
    assert missing.value.extra == extra
    assert f"pip install 'sealane[{extra}]'" in str(missing.value)


async def test_without_the_compiler_of_protobuf_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from sealane.node.schemas import compiling

    monkeypatch.setattr(compiling, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match="grpcio-tools"):
        await compiling.compiled('syntax = "proto3";', None)


def test_a_broker_without_schemas_loads_none_of_them() -> None:
    program = f"""
import asyncio, sys, sealane
async def main():
    async with sealane.embedded() as lane:
        await lane.publish("orders", b"hello")
asyncio.run(main())
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=False, timeout=60)
    assert (done.stdout.decode().strip(), done.stderr.decode()) == ("[]", "")
