"""`python -m bench [--quick] [--only NAME …] [--rounds N]`: measure, print, and write `bench/results/`.

`--only wire` is everything over the wire, `--only in-process` everything inside one process.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import io
import pstats
import shutil
import statistics
import tempfile
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from rich.console import Console

from bench import in_process, start_up, wire
from bench.figures import Figure, write_report
from bench.machine import Disturbance, facts, sync_milliseconds

RESULTS = Path(__file__).parent / "results"
console = Console()

Work = Callable[[Path, int], Coroutine[Any, Any, float]]
"""Given an empty directory and a divisor of the amount of work (1, or more when it must be quick)."""

WORKLOADS: dict[str, tuple[str, str, float | None, Work]] = {
    "batches": (
        "100 B, publish_many of 5,000, grant, ack",
        "msg/s",
        1_500_000,
        lambda path, less: in_process.batches(path, count=600 // less, batch=5_000),
    ),
    "batches-100": (
        "100 B, publish_many of 100, grant, ack",
        "msg/s",
        None,
        lambda path, less: in_process.batches(path, count=5_000 // less, batch=100, in_flight=8),
    ),
    "singles": (
        "100 B, single publishes one after another",
        "msg/s",
        3_000,
        lambda path, less: in_process.singles(path, count=10_000 // less, in_flight=1),
    ),
    "singles-64": (
        "100 B, single publishes, 64 in flight",
        "msg/s",
        50_000,
        lambda path, less: in_process.singles(path, count=200_000 // less, in_flight=64),
    ),
    "one-by-one": (
        "100 B, producer.send, async for message, ack",
        "msg/s",
        None,
        lambda path, less: in_process.one_by_one(path, count=400_000 // less),
    ),
}


WireWork = Callable[[Path, int], float]

WIRE: dict[str, tuple[str, float | None, WireWork]] = {
    "wire-batches": (
        "100 B, publish_many of 5,000, consume_batches, ack",
        500_000,
        lambda path, less: wire.rate(path, "publish_many", "consume_batches", count=3_000_000 // less, batch=5_000),
    ),
    "wire-batches-100": (
        "100 B, publish_many of 100, consume_batches, ack",
        None,
        lambda path, less: wire.rate(path, "publish_many", "consume_batches", count=500_000 // less, batch=100),
    ),
    "wire-one-by-one": (
        "100 B, producer.send, async for message, ack",
        80_000,
        lambda path, less: wire.rate(path, "send", "consume", count=500_000 // less),
    ),
    "wire-blocking": (
        "100 B, the same with the blocking client",
        60_000,
        lambda path, less: wire.rate(path, "send_blocking", "consume_blocking", count=500_000 // less),
    ),
}
"""Messages a second, with the node, the producer and the consumer in a process each."""

WIRE_NAMES = [*WIRE, "wire-latency", "wire-idle"]
IN_PROCESS_NAMES = [*WORKLOADS, "start-up"]
GROUPS = {"wire": WIRE_NAMES, "in-process": IN_PROCESS_NAMES}


@contextmanager
def empty_directory(directory: Path) -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="sealane-bench-", dir=directory))
    try:
        yield path
    finally:
        shutil.rmtree(path)


def measure_wire(name: str, rounds: int, less: int, directory: Path) -> list[Figure]:
    if name == "wire-latency":
        return measure_latency(rounds, less, directory)
    values = []
    watch = Disturbance.begin()
    for _ in range(rounds):
        with empty_directory(directory) as path:
            values.append(wire.idle_mebibytes(path) if name == "wire-idle" else WIRE[name][2](path, less))
    notes = {"foreign CPU": f"{watch.foreign_share():.0%}"}
    if name == "wire-idle":
        title, unit, reach = "memory of an idle node", "MiB", None
    else:
        title, reach, _ = WIRE[name]
        unit = "msg/s"
    return [
        Figure(title, unit, statistics.median(values), tuple(values), reach, name == "wire-idle", notes=notes),
    ]


def measure_latency(rounds: int, less: int, directory: Path) -> list[Figure]:
    watch = Disturbance.begin()
    measured = []
    for _ in range(rounds):
        with empty_directory(directory) as path:
            measured.append(wire.latencies(path, count=10_000 // less))
    notes = {"foreign CPU": f"{watch.foreign_share():.0%}"}
    figures = []
    for side, what in enumerate(("receipt", "received")):
        for percent in (50, 95, 99):
            values = tuple(wire.percentile(both[side], percent) for both in measured)
            reach = 1.0 if percent == 50 else None
            title = f"1,000 single publishes a second, publish to {what}, p{percent}"
            figures.append(Figure(title, "ms", statistics.median(values), values, reach, True, notes=notes))
    return figures


def measure(name: str, rounds: int, less: int, directory: Path) -> Figure:
    title, unit, reach, work = WORKLOADS[name]
    values = []
    watch = Disturbance.begin()
    for _ in range(rounds):
        path = Path(tempfile.mkdtemp(prefix="sealane-bench-", dir=directory))
        try:
            values.append(uvloop.run(work(path, less)))
        finally:
            shutil.rmtree(path)
    notes = {"foreign CPU": f"{watch.foreign_share():.0%}"}
    return Figure(title, unit, statistics.median(values), tuple(values), reach, notes=notes)


def measure_start(directory: Path, *, topics: int, messages: int) -> list[Figure]:
    figures = []
    amount = f"{topics:,} topics, {messages:,} messages"
    for what, reach, fill in (
        ("after a stop", 5.0, start_up.fill_now),
        ("after a crash", 30.0, start_up.crash_while_filled),
    ):
        path = Path(tempfile.mkdtemp(prefix="sealane-bench-", dir=directory))
        try:
            fill(path, topics=topics, messages=messages)
            seconds = asyncio.run(start_up.ready_seconds(path))
        finally:
            shutil.rmtree(path)
        figures.append(Figure(f"ready {what}, {amount}", "s", seconds, (seconds,), reach, less_is_better=True))
    return figures


def profile(name: str, directory: Path) -> str:
    """Where the time of a workload goes, by function; the profiler itself slows Python code about twofold."""
    _, _, _, work = WORKLOADS[name]
    path = Path(tempfile.mkdtemp(prefix="sealane-bench-", dir=directory))
    profiler = cProfile.Profile()
    try:
        profiler.enable()
        uvloop.run(work(path, 10))
        profiler.disable()
    finally:
        shutil.rmtree(path)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(25)
    return text.getvalue()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the work, one round")
    names = [*IN_PROCESS_NAMES, *WIRE_NAMES]
    parser.add_argument("--only", nargs="*", choices=[*GROUPS, *names], help="these workloads")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--directory", type=Path, default=Path(tempfile.gettempdir()), help="where data is written")
    parser.add_argument("--profile", action="store_true", help="also write the profile of the hot paths")
    options = parser.parse_args()
    names = [each for name in options.only or GROUPS for each in GROUPS.get(name, [name])]
    rounds, less = (1, 10) if options.quick else (options.rounds, 1)
    figures: dict[str, list[Figure]] = {}
    sync = sync_milliseconds(options.directory)
    for name in names:
        with console.status(f"measuring {name} …"):
            if name in WIRE_NAMES:
                found = measure_wire(name, rounds, less, options.directory)
            elif name == "start-up":
                amount = 500_000 if options.quick else 10_000_000
                found = measure_start(options.directory, topics=100 if options.quick else 1_000, messages=amount)
            else:
                found = [measure(name, rounds, less, options.directory)]
        for figure in found:
            reach = "" if figure.reach is None else f"(reach {figure.reach:,.0f})"
            console.print(f"{figure.name}: [bold]{figure.value:,.2f}[/] {figure.unit} {reach}")
        figures.setdefault("wire" if name in WIRE_NAMES else "in-process", []).extend(found)
    described = {**facts(), "sync of 1.2 KB": f"p50 {sync[0]:.3f} ms, p99 {sync[1]:.3f} ms"}
    for group, some in figures.items():
        command = f'make bench ARGS="--only {group}{" --quick" if options.quick else ""}"'
        report = write_report(RESULTS, f"{group}-quick" if options.quick else group, command, described, some)
        console.print(f"written to {report}")
    if options.profile:
        for name in ("batches", "singles", "singles-64"):
            (RESULTS / f"profile-{name}.txt").write_text(profile(name, options.directory))


if __name__ == "__main__":
    main()
