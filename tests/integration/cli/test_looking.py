"""`status`, `top`, `bench`, completion, and what is said when there is no node."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.integration.cli.shell import DEADLINE_SECONDS, Shell, close


@pytest.fixture(scope="module", autouse=True)
def something_is_there(shell: Shell) -> None:
    shell.text("publish", "watched", "--lines", input=b"1\n2\n3\n")
    shell.text("consume", "watched", "-s", "reader", "--count", "1")


def test_the_status_tells_how_the_node_is_doing(shell: Shell) -> None:
    status = shell.json("status", "--json")
    assert status["ready"] is True
    (topic,) = [each for each in status["topics"] if each["name"] == "default/watched"]
    assert (topic["messages"], topic["depth"], topic["subscriptions"][0]["name"]) == (3, 2, "reader")

    shown = shell.text("status")
    assert re.search(r"^node +Sealane \S+, ready$", shown, re.MULTILINE)
    assert re.search(r"^default/watched +3 .* reader .* 2 ", shown, re.MULTILINE)


def test_top_shows_one_frame_where_no_terminal_is(shell: Shell) -> None:
    for arguments in (["top", "--once"], ["top"]):
        shown = shell.text(*arguments)
        assert shown.startswith("Sealane ")
        assert re.search(r"^default/watched .* reader ", shown, re.MULTILINE)
        assert "\x1b" not in shown


@pytest.mark.parametrize("end", ["q", "ctrl-c"])
def test_top_is_live_in_a_terminal_and_puts_it_back(shell: Shell, end: str) -> None:
    terminal, inside = pty.openpty()
    termios.tcsetwinsize(inside, (40, 160))
    process = shell.start("top", "--interval", "100ms", stdin=inside, stdout=inside, stderr=inside)
    os.close(inside)
    shown = b""

    def wait_for(text: bytes) -> None:
        nonlocal shown
        deadline = time.monotonic() + DEADLINE_SECONDS
        while text not in shown:
            ready, _, _ = select.select([terminal], [], [], max(0, deadline - time.monotonic()))
            assert ready, shown
            shown += os.read(terminal, 65_536)

    try:
        wait_for(b"watched")
        shown = b""
        wait_for(b"watched")  # It goes on.
        if end == "q":
            os.write(terminal, b"q")
        else:
            process.send_signal(signal.SIGINT)
        wait_for(b"\x1b[?1049l")  # The screen that was there before.
        assert process.wait(DEADLINE_SECONDS) == (0 if end == "q" else 130)
        assert b"Traceback" not in shown
    finally:
        close(process)
        os.close(terminal)


def test_a_bench_measures_and_leaves_nothing_behind(shell: Shell) -> None:
    result = shell.json("bench", "--messages", "2000", "--batch", "500", "--latency-for", "200ms", "--json")
    assert result["batches"]["messages"] == 2_000
    assert result["singles"]["messages"] == 200
    assert result["latency"]["messages"] == 100
    assert result["latency"]["publish_ms"]["p50"] > 0
    assert result["latency"]["receive_ms"]["p99"] >= result["latency"]["receive_ms"]["p50"]
    assert [each["name"] for each in shell.json("topic", "list", "--json") if "bench" in each["name"]] == []


def completions(shell: Shell, *words: str, **variables: str) -> list[str]:
    environment = {
        **shell.environment,
        "_SEALANE_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(words),
        "COMP_CWORD": str(len(words) - 1),
        **variables,
    }
    command = [sys.executable, "-m", "sealane"]
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_the_shell_completes_commands_topics_and_subscriptions(shell: Shell) -> None:
    assert completions(shell, "sealane", "subs") == ["subscription"]
    assert completions(shell, "sealane", "topic", "con") == ["configure"]
    assert completions(shell, "sealane", "topic", "show", "wat") == ["watched"]
    assert completions(shell, "sealane", "subscription", "show", "watched", "re") == ["reader"]
    assert completions(shell, "sealane", "consume", "watched", "--subscription", "re") == ["reader"]


def test_completion_is_silent_where_no_node_is(shell: Shell, tmp_path: Path) -> None:
    assert completions(shell, "sealane", "topic", "show", "wat", SEALANE_DATA=str(tmp_path)) == []
    assert completions(shell, "sealane", "topic", "show", "wat", SEALANE_URL="sealane://127.0.0.1:1") == []


def test_without_a_node_a_command_says_how_to_start_one(shell: Shell, tmp_path: Path) -> None:
    done = shell.run("publish", "orders", "hello", "--data", str(tmp_path))
    assert done.returncode == 1
    assert done.stderr == b"error: no node found: start one with `sealane up`, or give --url or --profile\n"


def test_a_node_that_does_not_answer_is_named(shell: Shell) -> None:
    done = shell.run("status", "--url", "sealane://127.0.0.1:1")
    assert done.returncode == 1
    assert b"127.0.0.1:1" in done.stderr
    assert b"Traceback" not in done.stderr
