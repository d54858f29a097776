"""The OpenAPI document is true: whatever it allows is answered as it says, and what it forbids is refused."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.specs.openapi.checks import positive_data_acceptance

from sealane.doors.http.app import make_api
from sealane.doors.http.watched import Watched, Watching
from tests.http_node import http_node

EXAMPLES = 8
UNCHECKED: list[Any] = [positive_data_acceptance]
"""What fits the document may still be a filter that cannot be read, or name what is not there."""


@contextmanager
def running() -> Iterator[str]:
    """A node on a loop of its own, since schemathesis asks from another thread."""
    address: list[str] = []
    ready, stop = threading.Event(), asyncio.Event()
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        async with http_node() as node:
            address.append(f"http://{node.door.address}")
            ready.set()
            await stop.wait()

    thread = threading.Thread(target=lambda: loop.run_until_complete(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield address[0]
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(60)
        loop.close()


@pytest.fixture(scope="module")
def root() -> Iterator[str]:
    with running() as address:
        yield address


DOCUMENT = make_api(Watching(Watched(lambda: True, list, lambda: (b"", "text/plain")), metrics_public=True)).openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
OPERATIONS = [
    (path, method)
    for path, found in DOCUMENT["paths"].items()
    for method in found
    if not path.endswith("/events")  # Their answers never end; they have tests of their own.
]


@pytest.mark.slow
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
@pytest.mark.parametrize(("path", "method"), OPERATIONS)
def test_an_operation_answers_as_the_document_says(root: str, path: str, method: str, mode: GenerationMode) -> None:
    operation = SCHEMA[path][method.upper()]

    @settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(mode))
    def ask(case: schemathesis.Case) -> None:
        assume("wait" not in (case.query or {}) or case.query["wait"] in (0, "0"))
        answer = case.call(base_url=root)
        assert answer.status_code < 500 or answer.status_code == 507, answer.text
        case.validate_response(answer, excluded_checks=UNCHECKED)

    try:
        ask()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, "the document allows nothing"
