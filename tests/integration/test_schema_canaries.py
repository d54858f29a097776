"""What does not fit a schema is refused without a word of its content: not in errors, not in logs, nowhere."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pyarrow as pa
import pytest

import sealane
from sealane.testing.node_process import NodeProcess
from sealane.wire.faults import fault_of
from tests.integration.canaries import Aviary
from tests.integration.server.up import sealane as command

DEADLINE_SECONDS = 60.0

ORDER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "state": {"enum": ["new", "paid"]},
        "code": {"type": "string", "pattern": "^[0-9]+$", "maxLength": 4},
        "gift": {"oneOf": [{"type": "null"}, {"type": "object", "required": ["to"]}]},
    },
    "required": ["id"],
    "additionalProperties": {"type": "integer"},
    "not": {"required": ["never"]},
}
PROTO = 'syntax = "proto3"; message Order { int32 id = 1; string city = 2; }'
FIELDS = [{"name": "id", "type": "int"}, {"name": "s", "type": "string"}]
AVRO = json.dumps({"type": "record", "name": "O", "fields": FIELDS})
ARROW_SCHEMA = pa.schema([pa.field("city", pa.int64(), nullable=False)])


def misfits(aviary: Aviary) -> list[tuple[str, list[bytes]]]:
    """By topic: payloads that do not fit, with a canary in each."""
    secret = aviary.plant("value")
    text = secret.encode()
    documents = [
        {"id": secret},
        {"id": 1, "state": secret},
        {"id": 1, "code": secret},
        {"id": 1, "gift": {"for": secret}},
        {"id": 1, "gift": secret},
        {"id": 1, "more": secret},
        {"id": 1, "never": 1, "state": secret},
        [secret],
        secret,
    ]
    sent = pa.RecordBatch.from_pydict({"city": [secret]})
    return [
        ("json", [*(json.dumps(each).encode() for each in documents), text, b'{"id": ' + text, b'"' + text + b'\xff"']),
        ("protobuf", [text, b"\x0a" + bytes([len(text)]) + text, b"\x12" + bytes([len(text) + 1]) + text + b"\xff"]),
        ("avro", [text, b"\x02" + bytes([2 * len(text) + 2]) + text + b"\xff", b"\x02\x02a" + text]),
        ("arrow", [text, sent.serialize().to_pybytes(), sent.schema.serialize().to_pybytes() + text]),
    ]


class Hearing(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.heard: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.heard += [self.format(record), str(vars(record))]


async def refuse_all(url: str, sent: list[tuple[str, list[bytes]]]) -> list[object]:
    """Send all of it, each in every way; what was answered."""
    told: list[object] = []
    async with sealane.connect(url) as lane:
        for format, schema in (
            ("json", json.dumps(ORDER)),
            ("protobuf", PROTO),
            ("avro", AVRO),
            ("arrow", base64.b64encode(ARROW_SCHEMA.serialize()).decode()),
        ):
            await lane.administer("schema.register", topic=format, schema=schema, format=format)
        key = sealane.PrivateKey.generate().public
        for topic, payloads in sent:
            for payload in payloads:
                for publishing in (
                    lane.publish(topic, payload),
                    lane.publish_many(topic, [payload] * 300),
                    lane.publish(topic, payload, seal_for=key),
                ):
                    with pytest.raises(sealane.SchemaMismatch) as refused:
                        await publishing
                    error = refused.value
                    assert error.path.startswith("$")
                    told += [error, repr(error), vars(error), fault_of(error)]
    return told


def test_nothing_of_a_payload_is_told_but_the_path(tmp_path: Path) -> None:
    aviary, hearing = Aviary(), Hearing()
    sent = misfits(aviary)
    logging.getLogger("sealane").addHandler(hearing)
    try:
        with NodeProcess(tmp_path / "data", {"log.level": "debug"}) as node:
            told = asyncio.run(refuse_all(node.url, sent))
            told += post_all(node.doors["http"], sent)
            told += check_all(tmp_path, node.url, sent)
            with urlopen(f"http://{node.doors['http']}/metrics", timeout=DEADLINE_SECONDS) as answer:
                told.append(answer.read())
    finally:
        logging.getLogger("sealane").removeHandler(hearing)
    logged = node.log_file.read_text()
    assert "a schema was registered" in logged
    everything = "\n".join(map(str, [*told, *hearing.heard, logged])).encode()
    assert b"default/json" in everything, "the search looks at the right things"
    assert aviary.found_in(everything) == []


def post_all(address: str, sent: list[tuple[str, list[bytes]]]) -> list[bytes]:
    """By HTTP, where that is there: an answer that is an error has what a client would show."""
    answers = []
    for topic, payloads in sent:
        for payload in payloads:
            where = f"http://{address}/api/v1/domains/default/topics/{topic}/messages"
            request = Request(where, payload, {"content-type": "application/octet-stream"}, method="POST")
            try:
                with urlopen(request, timeout=DEADLINE_SECONDS) as answer:
                    raise AssertionError(f"{topic} took it: {answer.status}")
            except HTTPError as error:
                answers.append(error.read())
    return answers


def check_all(directory: Path, url: str, sent: list[tuple[str, list[bytes]]]) -> list[str]:
    """By the command line."""
    told = []
    for topic, payloads in sent:
        file = directory / "payload"
        file.write_bytes(payloads[-1])
        done = command("schema", "check", topic, "--payload", str(file), "--url", url, cwd=directory)
        assert done.returncode == 1, done
        told += [done.stdout, done.stderr]
    return told
