"""A body that a route reads: bounded in size, whether announced or not, and in the time it takes to arrive."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from typing import Any

import pytest
from fastapi import Body, FastAPI, Request

from sealane.doors.http.body_limit import BodyLimit
from sealane.doors.http.problems import answer_with_problems

NEVER = None


def application(**limits: Any) -> FastAPI:
    app = FastAPI()
    app.add_middleware(BodyLimit, **{"bytes_max": 10, "seconds_max": 60.0, **limits})
    answer_with_problems(app)

    @app.post("/raw")
    async def raw(request: Request) -> int:
        return len(await request.body())

    @app.post("/parsed")
    async def parsed(content: list[int] = Body()) -> int:  # noqa: B008 - how FastAPI is told
        return len(content)

    return app


async def post(app: FastAPI, path: str, pieces: Iterable[bytes | None]) -> tuple[int, Any]:
    """The answer to a body that comes in these pieces, its length not announced; after `NEVER` no more comes."""
    left = list(pieces)
    sent: list[Any] = []

    async def receive() -> Any:
        piece = left.pop(0)
        if piece is NEVER:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": piece, "more_body": bool(left)}

    async def send(message: Any) -> None:
        sent.append(message)

    headers = [(b"content-type", b"application/json"), (b"transfer-encoding", b"chunked")]
    scope = {"type": "http", "method": "POST", "path": path, "headers": headers, "query_string": b"", "root_path": ""}
    async with asyncio.timeout(30):
        await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(message.get("body", b"") for message in sent[1:]))


@pytest.mark.parametrize("path", ["/raw", "/parsed"])
async def test_a_body_at_the_limit_is_read_and_one_byte_more_is_refused(path: str) -> None:
    fits = await post(application(), path, [b"[1,2,", b"3,45]"])
    status, problem = await post(application(), path, [b"[1,2,", b"3,456]"])

    assert fits[0] == 200
    assert status == 413
    assert "doors.http.body_bytes_max" in problem["detail"]


@pytest.mark.parametrize("path", ["/raw", "/parsed"])
async def test_a_body_that_does_not_come_to_an_end_is_given_up(path: str) -> None:
    status, problem = await post(application(seconds_max=0.05), path, [b"[1,", NEVER])

    assert status == 408
    assert "doors.http.receive_seconds_max" in problem["detail"]


async def test_what_cannot_be_understood_is_told_without_repeating_it() -> None:
    status, problem = await post(application(), "/parsed", [b'["secret"]'])

    assert status == 422
    assert problem["errors"][0]["at"] == "body.0"
    assert "secret" not in json.dumps(problem)
