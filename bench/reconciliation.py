"""A lake of many messages is reconciled as `sealane pipeline reconcile` does it; what was planted must be named.

`python -m bench.reconciliation LAKE` is the process that is measured: from its start of Spark, on two cores, to the
last problem that it names.
"""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path

from bench.clients.order import Result, done, wait_for_the_start
from bench.machine import Disturbance
from bench.planted_lake import Named, write_lake
from bench.process_tree import processor_seconds
from bench.processes import module, seconds_over_all, together
from bench.spark.sessions import MASTER

DEADLINE_SECONDS = 1_800.0
"""Far more than is asked for: how much too slow it is shall be known too."""


class NotAsPlanted(RuntimeError):
    """A proof has named others than those that were planted: then it does not matter how fast it was."""

    def __init__(self, named: set[Named], planted: set[Named]) -> None:
        wrong, missed = sorted(named - planted, key=str), sorted(planted - named, key=str)
        super().__init__(f"{len(wrong)} were named and not planted {wrong[:5]}, {len(missed)} not named {missed[:5]}")


def reconciled(directory: Path, *, messages: int) -> dict[str, float]:
    """Seconds, processor seconds of all its processes, and how many problems were named; raises `NotAsPlanted`."""
    lake = directory / "lake"
    planted = write_lake(lake, messages)
    results = together([module(__name__, lake)], DEADLINE_SECONDS)
    (found,) = results
    named: list[Named] = [(problem, topic, *rest) for problem, topic, *rest in found["named"]]
    if sorted(named, key=str) != planted:
        raise NotAsPlanted(set(named), set(planted))
    return {
        "seconds": seconds_over_all(results),
        "processor": found["processor_seconds"],
        "named": len(named),
        "foreign": found["foreign"],
    }


def prove(lake: Path) -> Result:
    """What the command does with a lake into which everything has come, from the start of Spark on."""
    from sealane.cli.pipeline_options import open_spark
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.proving import prove_lake
    from sealane.pipeline.settings import PipelineSettings

    begun_ns = wait_for_the_start()
    used = partial(processor_seconds, os.getpid())
    before, watch = used(), Disturbance.begin(used)
    proof = prove_lake(open_spark(PipelineSettings(lake=lake, master=MASTER)), Lake(lake))
    named = [
        (row["problem"], f"{row['domain']}/{row['topic']}", row["partition"], row["offset"], row["subscription"])
        for row in proof.problems
    ]
    return done(begun_ns, named=named, processor_seconds=used() - before, foreign=watch.foreign_share())


def main() -> None:
    # The JVM writes to what it inherits as standard output: that is to be where errors go, and never in the result.
    said = os.dup(sys.stdout.fileno())
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdout = os.fdopen(said, "w", closefd=False)
    result = prove(Path(sys.argv[1]))
    with os.fdopen(said, "wb") as output:
        output.write(json.dumps(result).encode())


if __name__ == "__main__":
    main()
