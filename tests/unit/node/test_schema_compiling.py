""".proto text is compiled by a process of its own, which sees nothing else and does not stay."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path

import pytest

from sealane.errors import InvalidSchema, Unavailable
from sealane.node.schemas import compiling
from sealane.node.schemas.compiling import COMPILES_WAITING_MAX, Compiler, compiled
from sealane.schemas import Definition, open_schema
from sealane.schemas.limits import SCHEMA_BYTES_MAX

SYNTAX = 'syntax = "proto3"; '


async def test_a_text_becomes_descriptors_with_all_that_it_imports() -> None:
    text = SYNTAX + 'import "google/protobuf/timestamp.proto"; message M { google.protobuf.Timestamp at = 1; }'
    definition = await compiled(text, None)
    schema = open_schema(definition)
    assert definition.text == text
    assert schema.check([b"\x0a\x02\x08\x01"]) is None
    misfit = schema.check([b"\x0a\x02\x0a\x00"])
    assert misfit is not None
    assert misfit.path == "$.at.seconds"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("message", "schema.proto:1:8: Expected message name"),
        (SYNTAX + "message M { Nowhere a = 1; }", '"Nowhere" is not defined'),
        (SYNTAX + 'import "other.proto"; message M {}', 'Import "other.proto" was not found'),
        (SYNTAX + 'import "/etc/passwd"; message M {}', 'Import "/etc/passwd" was not found'),
        (SYNTAX + 'import "../../../../etc/passwd"; message M {}', "was not found"),
        (SYNTAX + 'import "schema.proto"; message M {}', "schema.proto"),
        ("", "the compiler failed"),
    ],
)
async def test_what_cannot_be_compiled_is_refused_with_the_compilers_words(text: str, problem: str) -> None:
    with pytest.raises(InvalidSchema) as refused:
        open_schema(await compiled(text, None))
    if text:
        assert problem in refused.value.problem
    assert "/tmp" not in refused.value.problem


async def test_a_file_beside_it_cannot_be_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "near.proto").write_text(SYNTAX + "message Near {}", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidSchema, match=r"near\.proto"):
        await compiled(SYNTAX + 'import "near.proto"; message M { Near near = 1; }', None)


async def test_a_text_that_is_too_long_is_not_even_tried() -> None:
    with pytest.raises(InvalidSchema, match=f"{SCHEMA_BYTES_MAX:,}"):
        await compiled("/" * (SCHEMA_BYTES_MAX + 1), None)


async def test_a_compiler_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiling, "COMPILE_SECONDS_MAX", 0.2)
    monkeypatch.setattr(
        compiling, "_PROGRAM", "import os; os.write(2, str(os.getpid()).encode()); os.read(os.pipe()[0], 1)"
    )
    began = time.monotonic()
    with pytest.raises(InvalidSchema, match=r"longer than 0\.2 s"):
        await compiled(SYNTAX + "message M {}", None)
    assert time.monotonic() - began < 10


async def test_nothing_stays_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    await compiled(SYNTAX + "message M {}", None)
    with pytest.raises(InvalidSchema):
        await compiled("message", None)
    assert os.listdir(tmp_path) == []


async def test_texts_are_compiled_one_after_the_other_and_not_too_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    running, most = 0, 0

    async def slowly(text: str, message: str | None) -> Definition:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        running -= 1
        return Definition("protobuf", text)

    monkeypatch.setattr(compiling, "compiled", slowly)
    compiler = Compiler()
    asked = [asyncio.create_task(compiler.compiled(str(number), None)) for number in range(COMPILES_WAITING_MAX + 1)]
    *compiled_texts, refused = await asyncio.gather(*asked, return_exceptions=True)
    assert most == 1
    assert len(compiled_texts) == COMPILES_WAITING_MAX
    assert isinstance(refused, Unavailable)
    await compiler.compiled("again", None)
