"""The programs in the documentation do what it says."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path

import pytest

from tests.http_node import HttpNode

DOCS = Path(__file__).parents[3] / "docs"
DEADLINE_SECONDS = 60.0


def program(page: str) -> str:
    found = re.search(r"^```python\n(.*?)^```", (DOCS / page).read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    return found[1]


@pytest.mark.parametrize(
    ("page", "lines"),
    [
        ("websocket.md", {"'type': 'welcome'", "'type': 'published'", "'type': 'subscribed'", "'payload': 'hello'"}),
        ("events.md", {"'payload': 'first'", "'payload': 'second'"}),
    ],
)
async def test_the_python_client_of_a_page_runs_as_it_is(node: HttpNode, page: str, lines: set[str]) -> None:
    if page == "events.md":
        await node.publish("orders", "first", "second")
    process = await asyncio.create_subprocess_exec(
        *[sys.executable, "-u", "-c", program(page).replace("127.0.0.1:8080", node.door.address)],
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    said = ""
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            while unsaid := {
                line for line in lines if line not in said
            }:  # in any order: answers may overtake each other
                line = (await process.stdout.readline()).decode()
                assert line, f"it ended before it said {unsaid}"
                said += line
    finally:
        process.kill()
        await process.wait()
