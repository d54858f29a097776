"""Schemas by the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.integration.cli.shell import Shell

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {"id": {"type": "integer"}},
    "required": ["id"],
    "additionalProperties": False,
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    wider = {**ORDER, "properties": {**ORDER["properties"], "city": {"type": "string"}}}
    other = {**ORDER, "properties": {"id": {"type": "string"}}}
    for name, schema in (("order", ORDER), ("wider", wider), ("other", other)):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema), encoding="utf-8")
    (tmp_path / "good.txt").write_bytes(b'{"id": 1}')
    (tmp_path / "some.jsonl").write_bytes(b'{"id": 1}\n{"id": "secret"}\n{}\n')
    (tmp_path / "order.proto").write_text(
        'syntax = "proto3"; message Order { int32 id = 1; } message Line { int32 n = 1; }', encoding="utf-8"
    )
    (tmp_path / "order.avsc").write_text('{"type": "record", "name": "O", "fields": []}', encoding="utf-8")
    (tmp_path / "order.arrow").write_bytes(pa.schema([("id", pa.int64())]).serialize().to_pybytes())
    with pa.OSFile(str(tmp_path / "file.arrow"), "wb") as sink:
        pa.ipc.new_file(sink, pa.schema([("id", pa.int64())])).close()
    return tmp_path


def failed(shell: Shell, *arguments: str) -> tuple[int, str]:
    done = shell.run(*arguments)
    return done.returncode, done.stderr.decode()


def test_a_schema_is_registered_listed_shown_and_removed(shell: Shell, files: Path) -> None:
    said = shell.text("schema", "register", "orders", str(files / "order.json"))
    assert said.startswith("the schema is registered as version 1 of default/orders, with id ")
    again = shell.json("schema", "register", "orders", str(files / "order.json"), "--json")
    assert (again["version"], again["new"]) == (1, False)
    shell.text("schema", "register", "orders", str(files / "wider.json"))

    (listed,) = [each for each in shell.json("schema", "list", "--json") if each["topic"] == "default/orders"]
    assert (listed["version"], listed["format"], listed["versions"]) == (2, "json", 2)
    assert [line.split()[:2] for line in shell.text("schema", "list", "orders").splitlines()[1:]] == [
        ["default/orders", "1"],
        ["default/orders", "2"],
    ]
    assert json.loads(shell.text("schema", "show", "orders", "--version", "1", "--text")) == ORDER
    assert "compatibility" in shell.text("schema", "show", "orders")
    assert shell.json("schema", "show", "orders", "--json")["version"] == 2

    assert "version" in failed(shell, "schema", "remove", "orders", "--version", "1")[1]
    assert shell.text("schema", "remove", "orders", "--version", "1", "--yes") == "default/orders: removed 1\n"
    assert shell.json("schema", "remove", "orders", "--yes", "--json")["removed"] == [2]
    code, problem = failed(shell, "schema", "show", "orders")
    assert (code, "sealane schema register" in problem) == (1, True)


def test_what_may_not_follow_the_latest_is_refused_with_the_reasons(shell: Shell, files: Path) -> None:
    shell.text("schema", "register", "strict", str(files / "order.json"))
    code, problem = failed(shell, "schema", "register", "strict", str(files / "other.json"))
    assert (code, "$.id: it must be string" in problem) == (1, True)

    assert "can be registered" in shell.text("schema", "check", "strict", str(files / "wider.json"))
    assert "already" in shell.text("schema", "check", "strict", str(files / "order.json"))
    code, problem = failed(shell, "schema", "check", "strict", str(files / "other.json"))
    assert (code, problem.startswith("$.id: it must be string")) == (1, True)
    done = shell.run("schema", "check", "strict", str(files / "other.json"), "--json")
    assert (done.returncode, json.loads(done.stdout)["compatible"]) == (1, False)

    said = shell.text("schema", "configure", "strict", "--compatibility", "none", "--no-validate")
    assert said == "default/strict: compatibility is none, payloads are not checked\n"
    shell.text("schema", "register", "strict", str(files / "other.json"))


def test_payloads_are_checked_here_by_the_latest(shell: Shell, files: Path) -> None:
    shell.text("schema", "register", "payloads", str(files / "order.json"))
    said = shell.text("schema", "check", "payloads", "--payload", str(files / "good.txt"))
    assert said == "1 payload fits version 1 of default/payloads\n"
    code, problem = failed(shell, "schema", "check", "payloads", "--payload", str(files / "some.jsonl"), "--lines")
    assert code == 1
    assert problem.splitlines() == [
        f"{files / 'some.jsonl'}, line 2: $.id: it must be of type integer",
        f"{files / 'some.jsonl'}, line 3: $.id: it is required, and missing",
    ]
    done = shell.run("schema", "check", "payloads", "--payload", str(files / "some.jsonl"), "--lines", "--json")
    told = json.loads(done.stdout)
    assert (told["payloads"], [each["payload"] for each in told["misfits"]]) == (3, [2, 3])


def test_the_name_of_a_file_tells_its_format(shell: Shell, files: Path) -> None:
    code, problem = failed(shell, "schema", "register", "proto", str(files / "order.proto"))
    assert (code, "Order, Line" in problem) == (1, True)
    shell.text("schema", "register", "proto", str(files / "order.proto"), "--message", "Order")
    shell.text("schema", "register", "avro", str(files / "order.avsc"))
    shell.text("schema", "register", "arrow", str(files / "order.arrow"))
    assert "is already version 1" in shell.text("schema", "register", "arrow", str(files / "file.arrow"))
    formats = {each["topic"]: each["format"] for each in shell.json("schema", "list", "--json")}
    assert formats["default/proto"] == "protobuf"
    assert (formats["default/avro"], formats["default/arrow"]) == ("avro", "arrow")
    assert shell.text("schema", "show", "arrow", "--text") == "id: int64\n"


def test_a_schema_comes_by_standard_input_too(shell: Shell, files: Path) -> None:
    schema = (files / "order.json").read_bytes()
    done = shell.run("schema", "register", "piped", "-", "--format", "json", input=schema)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("register", "orders", "good.txt"), "give --format"),
        (("register", "orders", "order.json", "--format", "xsd"), "xsd"),
        (("register", "orders", "order.json", "--compatibility", "sometimes"), "sometimes"),
        (("register", "orders", "good.txt", "--format", "arrow"), "neither an Arrow file nor a stream"),
        (("check", "orders"), "give a FILE with a schema, or --payload"),
        (("configure", "orders"), "nothing to change"),
        (("show", "orders", "--version", "0"), "version"),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(shell: Shell, files: Path, arguments: tuple[str, ...], problem: str) -> None:
    named = [str(files / each) if (files / each).is_file() else each for each in arguments]
    code, said = failed(shell, "schema", *named)
    assert (code, problem in said) == (2, True), said


def test_a_file_that_is_not_there_is_an_error(shell: Shell, files: Path) -> None:
    code, problem = failed(shell, "schema", "register", "orders", str(files / "nowhere.json"))
    assert (code, "nowhere.json" in problem) == (1, True)
