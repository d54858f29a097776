"""What the client processes of all peers share: their arguments, their start, their pace and their last words.

`python -m bench.peers.NAME_client WORK ADDRESS COUNT BATCH SIZE`, as `bench.processes.together` runs them.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import uvloop

PUBLISHES_PER_SECOND = 1_000
PACE_NS = 1_000_000_000 // PUBLISHES_PER_SECOND
MOMENT = struct.Struct("<q")

Result = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Job:
    """What a client process is asked to do."""

    address: str
    count: int
    batch: int
    size: int

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2])

    def payloads(self) -> list[bytes]:
        """A batch of them, random and all different."""
        return [os.urandom(self.size) for _ in range(self.batch)]

    def stamped(self, moment_ns: int) -> bytes:
        """A payload that carries its moment."""
        return MOMENT.pack(moment_ns) + bytes(self.size - MOMENT.size)


Work = Callable[[Job], Result | Coroutine[Any, Any, Result]]


def wait_for_the_start() -> int:
    """Say that all is connected, wait to be told to go, and return the moment."""
    print("ready", flush=True)
    sys.stdin.readline()
    return time.monotonic_ns()


def done(begun_ns: int, **seen: Any) -> Result:
    return {"begun_ns": begun_ns, "ended_ns": time.monotonic_ns(), **seen}


def now_ns() -> int:
    """The clock of all client processes."""
    return time.monotonic_ns()


def age_ms(payload: bytes) -> float:
    """Milliseconds since a stamped payload was made, by any process of this machine."""
    return (time.monotonic_ns() - MOMENT.unpack_from(payload)[0]) / 1e6


def paced(count: int) -> Iterator[int]:
    """The moments of a thousand publishes a second, each when it has come.

    One that is late, since the call before it took too long, has the moment at which it was due: what it waited counts.
    """
    begun_ns = time.monotonic_ns()
    for number in range(count):
        due_ns = begun_ns + number * PACE_NS
        if (wait_ns := due_ns - time.monotonic_ns()) > 0:
            time.sleep(wait_ns / 1e9)
            yield time.monotonic_ns()
        else:
            yield due_ns


def main(*works: Work) -> None:
    """Do the work that the command line names, and tell what came of it."""
    name, address, *amounts = sys.argv[1:]
    result = {work.__name__: work for work in works}[name](Job(address, *map(int, amounts)))
    if not isinstance(result, dict):
        result = uvloop.run(result)
    # Not printed: where output is unbuffered, a write to a full pipe may be cut short.
    with os.fdopen(sys.stdout.fileno(), "wb", closefd=False) as output:
        output.write(json.dumps(result).encode())
