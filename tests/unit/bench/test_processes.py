"""Client processes of a measurement begin together, and none outlives it."""

from __future__ import annotations

import os
import sys

import pytest

from bench.processes import ClientFailed, seconds_over_all, together

CLIENT = """
import json, os, sys, time
print("ready", flush=True)
sys.stdin.readline()
{work}
print(json.dumps({{"begun_ns": 1_000_000_000, "ended_ns": {ended}, "fill": "x" * {fill}, "pid": os.getpid()}}))
"""


def client(work: str = "", ended: int = 2_000_000_000, fill: int = 0) -> list[str]:
    return [sys.executable, "-c", CLIENT.format(work=work, ended=ended, fill=fill)]


def test_results_come_in_the_order_of_the_commands_even_when_they_fill_their_pipes():
    first, second = together(
        [client("time.sleep(0.2)", fill=1_000_000), client(ended=3_000_000_000, fill=1_000_000)], 30
    )
    assert first["ended_ns"] == 2_000_000_000
    assert second["ended_ns"] == 3_000_000_000
    assert seconds_over_all([first, second]) == 2.0


def test_a_failing_client_is_named_with_what_it_wrote_and_the_others_end(tmp_path):
    pid = tmp_path / "pid"
    waiting = client(f"open({str(pid)!r}, 'w').write(str(os.getpid())); time.sleep(60)")
    failing = client(f"\nwhile not os.path.exists({str(pid)!r}): time.sleep(0.01)\nsys.exit('no such thing')")
    with pytest.raises(ClientFailed, match="no such thing"):
        together([waiting, failing], 30)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_client_that_never_says_ready_fails():
    with pytest.raises(ClientFailed, match="instead of 'ready'"):
        together([[sys.executable, "-c", "print('hello')"]], 30)


def test_a_client_that_is_too_slow_fails_at_the_deadline():
    with pytest.raises(ClientFailed, match=r"not done within 0\.5 s"):
        together([client("time.sleep(60)")], 0.5)
