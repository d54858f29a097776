"""Processor time is counted for the process that takes it, and not for one that waits."""

from __future__ import annotations

import os
import sys
import time
from subprocess import PIPE, Popen

from bench import processor_time


def test_a_busy_process_takes_it_and_a_waiting_one_does_not():
    waits = "input()"
    with Popen([sys.executable, "-c", waits], stdin=PIPE) as process:
        with processor_time.taken(os.getpid()) as busy, processor_time.taken(process.pid) as waiting:
            until = time.process_time() + 0.5
            while time.process_time() < until:
                pass
        process.kill()
    assert 0.5 <= busy.seconds < 5.0
    assert waiting.seconds < busy.seconds
    assert busy.us_each(1_000) == busy.seconds * 1_000
