"""`bench.md`: Sealane beside its peers, what is asked of it, and how it was measured; the short page to read first."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.figures import SEALANE, number
from bench.plots import Plot
from bench.records import Record, Stated
from bench.report import (
    OURS,
    Results,
    disturbance,
    failure_lines,
    in_a_line,
    machine_table,
    reach,
    table,
    titles,
    verdict,
)

BESIDE = (
    ("100 B, msg/s", "wire-batches", "rate"),
    ("1 KiB, msg/s", "wire-1k", "rate"),
    ("1 KiB, MB/s", "wire-1k", "megabytes"),
    ("latency p50, ms", "latency", "received-p50"),
    ("p99, ms", "latency", "received-p99"),
)
"""The columns of the table beside the peers: what each is called, and which figure it is."""


INTRODUCTION = """\
One producer and one consumer process with Python clients, and each broker by itself on the same machine, at its best
idiomatic settings. Rates count from the first call to the consumer's last confirmed acknowledgement. Latency is from a
publish to its arrival in the consumer's process, at 1,000 single publishes of 100 B a second. Every figure is the
median of rounds that are interleaved over the systems."""


def write(directory: Path, results: Results, plots: Sequence[Plot]) -> Path:
    lines = [
        "# Sealane beside its peers",
        "",
        *INTRODUCTION.splitlines(),
        "",
        *beside_table(results),
        *ratio_lines(results),
    ]
    for plot in plots:
        lines += ["", f"![{plot.title}]({plot.path.name})"]
    lines += ["", "## What is asked, and what was found", "", *asked_table(results)]
    lines += ["", "## Durability and settings", "", *settings_table(results)]
    if machine := machine_lines(results):
        lines += ["", "## Machine and versions", "", *machine]
    lines += [*not_measured(results), ""]
    page = directory / "bench.md"
    page.write_text("\n".join(lines), encoding="utf-8")
    return page


def beside_table(results: Results) -> list[str]:
    rows: list[tuple[float, list[str]]] = []
    for system in (OURS, *results.peers):
        name = f"**{system.title}**" if system is OURS else system.title
        if system.missing is not None:
            rows.append((-1.0, [name, f"skipped: {in_a_line(system.missing)}", *[""] * len(BESIDE)]))
            continue
        found = [results.one(work, part, system.name) for _, work, part in BESIDE]
        if any(found):
            cells = ["" if figure is None else number(figure.value) for figure in found]
            first = float("inf") if system is OURS else found[0].value if found[0] else 0.0
            rows.append((first, [name, in_short(system.durability), *cells]))
    rows.sort(key=lambda row: -row[0])
    return table(["", "an acknowledgement means", *(title for title, _, _ in BESIDE)], [cells for _, cells in rows])


def in_short(durability: str) -> str:
    """The beginning of what is said of it, which is the heart of it; the rest is further down on the page."""
    return re.split("[,:;]", durability)[0]


def ratio_lines(results: Results) -> list[str]:
    names = titles(results.peers)
    rows = []
    for each, asked in results.ratios():
        by_rounds = each.median_by_rounds
        rows.append(
            [
                each.sealane.name,
                names[each.peer.system],
                "not measured together" if by_rounds is None else f"{number(by_rounds)} ×",
                f"{number(each.of_medians)} ×",
                f"≥ {number(asked)} ×",
                verdict(each.value >= asked),
            ]
        )
    if not rows:
        return []
    columns = ["Sealane ÷ the best durable peer", "which is", "median over rounds", "of medians", "reach", ""]
    return ["", *table(columns, rows)]


def asked_table(results: Results) -> list[str]:
    rows = []
    for figure in results.figures:
        if figure.reach is not None:
            group = results.works[figure.work].group
            what = f"[{figure.name}]({group}.md)"
            value = f"{number(figure.value)} {figure.unit}"
            rows.append([what, value, reach(figure), verdict(figure.reached), disturbance(figure.foreign)])
    return table(["what", "figure", "reach", "", "foreign CPU"], rows)


def settings_table(results: Results) -> list[str]:
    shown = [OURS, *(system for system in results.peers if system.missing is None)]
    rows = [[each.title, each.durability, each.settings, _versions(each)] for each in shown]
    return table(["", "an acknowledgement means", "settings", "versions"], rows)


def machine_lines(results: Results) -> list[str]:
    """The machine of the latest run of all, and what its disk does by itself."""
    runs = {moment: run for record in results.groups.values() for moment, run in record.runs.items()}
    if not runs:
        return []
    lines = machine_table(Record(runs))
    disk = results.one("disk-sequential", "sequential")
    if disk is not None:
        lines.append(f"| {disk.name} | {number(disk.value)} {disk.unit} |")
    moments = sorted(runs)
    span = moments[0] if len(moments) == 1 else f"{moments[0]} to {moments[-1]}"
    return [*lines, f"| measured (UTC) | {span}, by `{runs[moments[-1]].command}` |"]


def not_measured(results: Results) -> list[str]:
    lines: list[str] = []
    for record in results.groups.values():
        lines += [line for line in failure_lines(record, titles(results.peers)) if line.startswith("- ")]
    return ["", "## Not measured", "", *lines] if lines else []


def _versions(system: Stated) -> str:
    return ", ".join(f"{name} {version}" for name, version in system.versions.items() if name != SEALANE)
