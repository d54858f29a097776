"""Every example runs as its reader would run it, and says what it promises to show."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path

import pytest

from tests.java import JAVA_INSTALL, has_java

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"

EXPECTED = {
    "01_hello.py": ["durable at offset 0 of partition 0", "received 'hello', attempt 1, headers {'from': 'me'}"],
    "02_work_queue.py": ["30 jobs done by 3 workers, each job once"],
    "03_retries_and_dead_letters.py": [
        "order 1: billed",
        "order 2: attempt 3 failed",
        "dead letter after 3 attempts: customer has no address",
        "would come back: 1, because of {'customer has no address': 1}",
        "order 2: billed",
    ],
    "04_order_per_key.py": [f"{customer}: ordered, paid, packed, sent" for customer in ("ann", "bob", "cem", "dia")],
    "05_fan_out.py": [
        "two subscriptions: rain rain",
        "two screens of one subscription: fire fire",
        "the exchange chose: default/europe default/orders",
        "nothing is lost silently: exchange 'default/sales' routes 'us.refund' nowhere",
    ],
    "06_transactions.py": [
        "nothing happened, since the printer is on fire; topics: ['default/orders']",
        "committed; topics: ['default/invoices', 'default/letters', 'default/orders']",
        "again under the same id: replayed is True",
        "invoices stored: 1",
    ],
    "07_exactly_once.py": [
        "offsets: first 0, repeated 0, another 1",
        "after a restart: repeated 0; stored in all: 2",
    ],
    "08_batches_to_parquet.py": ["20,000 messages of 10 sensors in the file, columns ['key', 'payload', 'created']"],
    "09_delays_ttl_and_priorities.py": [
        "priority 9: urgent\npriority 5: ordinary\npriority 1: whenever you like\npriority 5: delayed by 2 s\n"
    ],
    "10_replay_and_filters.py": [
        "the first time: us 0, eu 1, us 2, eu 3, us 4, eu 5",
        "again from offset 4: us 4, eu 5",
        "again from a moment: eu 3, us 4, eu 5",
        "a new subscription, filtered: eu 1, eu 3, eu 5",
    ],
    "11_testing.py": ["1 passed"],
    "12_over_the_network.py": ["200 of 200 orders were billed, through a crash of the node"],
    "13_without_await.py": ["20 jobs were done"],
    "14_sealed_end_to_end.py": [
        "message.sealed = True, headers {'region': 'eu'}",
        "billing reads: card 4111 1111, card 4222 2222",
        "audit reads: card 4111 1111, and leaves 1 that is not for it",
        "a stranger: it was not sealed for any of the keys",
        "pinned: audit has another key now, nothing was published",
    ],
    "15_topics_as_dataframes.py": [
        "offset, value, _corrupt",
        "in the morning: 36 hourly means of 3 sensors",
        "in the evening: 72 of them; the kitchen at noon had 24.9 °C",
        "the chart is a PNG of more than 10 kB",
    ],
    "16_from_topics_to_a_report.py": [
        "Every message was settled once, or is under way",
        "published 210: billed 196, dead 4, in flight 10",
        "4 died of 'customer has no address'; another chance: sealane dlq redrive default/orders billing",
        "the report is one page of more than 20 kB",
    ],
}
SPARK_EXAMPLES = {"15_topics_as_dataframes.py", "16_from_topics_to_a_report.py"}
EXAMPLE_SECONDS = 60
SPARK_SECONDS = 900
"""Spark starts in seconds where it is alone, and in minutes where it is not."""


def arguments(name: str) -> list[str]:
    """A checkout that is not installed has no entry point by which pytest would find the fixtures."""
    is_installed = any(point.name == "sealane" for point in entry_points(group="pytest11"))
    return ["-p", "sealane.testing.plugin"] if name == "11_testing.py" and not is_installed else []


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SPARK_EXAMPLES)) for name in sorted(EXPECTED)]
)
def test_the_example_shows_what_it_says(
    name: str, tmp_path: Path, require_service: Callable[[str, bool, str], None]
) -> None:
    if name in SPARK_EXAMPLES:
        require_service("Java", has_java(), JAVA_INSTALL)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments(name)],
        capture_output=True,
        text=True,
        timeout=SPARK_SECONDS if name in SPARK_EXAMPLES else EXAMPLE_SECONDS,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stderr == ""
    at = 0
    for text in EXPECTED[name]:
        assert text in done.stdout[at:], done.stdout
        at = done.stdout.index(text, at)
    assert list(tmp_path.iterdir()) == [], "an example leaves nothing behind"


def test_every_example_is_run_and_listed() -> None:
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert files == set(EXPECTED)
    page = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in files if f"]({name})" not in page] == []
