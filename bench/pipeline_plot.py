"""The plot of the pipeline: what it costs, and what it keeps, by the size of a backlog."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

from bench.figures import Figure, number
from bench.plots import FAINT, OURS, canvas, short_number
from bench.report import Results

WORK = "pipeline"
PANELS = (
    ("Processor time of all processes", "processor", "seconds", "messages of 100 B in the backlog"),
    ("What steps leave to each other", "state", "KB", "messages that came in within the day"),
)
SIZES = ("small", "middle", "large")


def draw(path: Path, results: Results) -> bool:
    """Points, and the line through nothing that a cost in proportion would be on. False where there is nothing."""
    from bench.works import WORKS

    amounts = WORKS[WORK].amounts
    sizes = amounts["sizes"]
    # Backlogs go into one lake, one after the other: state is of all that came before, too.
    so_far = [each + amounts["warm_messages"] * amounts["warm_cycles"] for each in accumulate(sizes)]
    panels: list[tuple[str, str, str, Sequence[int], list[Figure]]] = []
    for title, name, unit, what in PANELS:
        found = [results.one(WORK, f"{size}-{name}") for size in SIZES]
        figures = [each for each in found if each is not None]
        if len(figures) < len(sizes):
            return False
        panels.append((title, unit, what, so_far if name == "state" else sizes, figures))
    with canvas(path, len(panels), 4.8 * len(panels), 3.2) as axes:
        for axis, (title, unit, what, counts, figures) in zip(axes, panels, strict=True):
            values = [each.value for each in figures]
            axis.plot([0, counts[-1]], [0, values[-1]], color=FAINT, linewidth=1, linestyle="--")
            axis.plot(counts, values, "o", color=OURS, markersize=7)
            for count, value in zip(counts, values, strict=True):
                axis.annotate(number(value), (count, value), xytext=(0, 8), textcoords="offset points", ha="center")
            axis.set_xlim(0, counts[-1] * 1.1)
            axis.set_ylim(0, max(values) * 1.25)
            axis.set_title(title)
            axis.set_xlabel(f"{what}; dashed: in proportion")
            axis.set_ylabel(unit)
            axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
            axis.grid(axis="y")
            axis.set_axisbelow(True)
    return True
