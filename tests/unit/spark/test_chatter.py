"""Spark's own chatter is left out of what is said, and nothing else."""

from __future__ import annotations

import pytest

from sealane.spark.chatter import SOURCE_RUNNER, START, without_chatter

TRACEBACK = b"Traceback (most recent call last):\n"
CHAINED = b"During handling of the above exception, another exception occurred:\n"
RUNNER = b'  File "/somewhere/pyspark.zip' + SOURCE_RUNNER + b'", line 265, in main\n'
OTHER = b'  File "/somewhere/mine.py", line 1, in <module>\n'
BROKEN = b"BrokenPipeError: [Errno 32] Broken pipe\n"
GOODBYE = [TRACEBACK, RUNNER, b"EOFError\n", b"\n", CHAINED, b"\n", TRACEBACK, RUNNER, BROKEN, b"\n", CHAINED, b"\n"]
GOODBYE += [TRACEBACK, b'  File "<frozen runpy>", line 198, in _run_module_as_main\n', RUNNER, BROKEN]


@pytest.mark.parametrize("said", [[], [START + b"\n"], GOODBYE, [START + b"\n", *GOODBYE, *GOODBYE]])
def test_what_means_nothing_is_left_out(said: list[bytes]) -> None:
    assert list(without_chatter(said)) == []


@pytest.mark.parametrize(
    "said",
    [
        [b"12:00:00 ERROR something\n", b"\n", b"  and more\n"],
        [TRACEBACK, OTHER, BROKEN],
        [TRACEBACK, OTHER, b"EOFError\n", b"after it\n"],
        [TRACEBACK, RUNNER, b"ValueError: a mistake of the source\n"],
        [TRACEBACK, RUNNER],
    ],
)
def test_everything_else_is_said(said: list[bytes]) -> None:
    assert list(without_chatter(said)) == said


def test_what_stands_around_a_good_bye_is_said() -> None:
    assert list(without_chatter([b"before\n", *GOODBYE, b"behind\n"])) == [b"before\n", b"behind\n"]
