"""The page of this protocol says what is so."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from sealane.doors.cipher.settings import CipherDoorSettings
from sealane.testing.node_process import NodeProcess
from sealane.wire.cipher.commands import USAGES
from sealane.wire.cipher.given import NAMES

PAGE = Path(__file__).parents[3] / "docs" / "cipher.md"
DEADLINE_SECONDS = 60.0


def test_the_program_with_plain_sockets_runs_as_it_is(node: NodeProcess) -> None:
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
    assert found is not None
    host, _, port = node.doors["cipher"].rpartition(":")
    text = found[1].replace('("127.0.0.1", 5672)', f'("{host}", {port})')
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-W", "ignore::ResourceWarning", "-c", text],
        capture_output=True,
        text=True,
        timeout=DEADLINE_SECONDS,
        check=False,
    )

    assert ran.stderr == ""
    said = [line for line in ran.stdout.splitlines() if line]
    assert said[:5] == ["Queue declared", "Exchange declared", "Queue bound", "ACK order-1", "Consuming billing"]
    assert said[5].startswith('Message: order-1 {"message_id": "order-1", ')
    assert said[6:] == ["ACK_CONFIRMED order-1"]


def test_the_page_has_every_command_as_it_is_written() -> None:
    page = PAGE.read_text()
    for name, usage in USAGES.items():
        written = usage.replace("{JSON}", "{json}")
        assert f"| `{written}` |" in page, name


def test_the_page_has_the_values_that_are_so() -> None:
    page, settings = PAGE.read_text(), CipherDoorSettings()

    assert str(NAMES) in page
    assert f"`QUEUE.{settings.subscription}.dead`" in page
    assert f"{settings.attempts_max:,} times {settings.lease_seconds:g} s" in page
    assert f"{settings.window_messages:,} ahead of the acks" in page
