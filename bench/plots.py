"""The plots of `bench/results`, as SVG: calm, legible to the colour-blind, and the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.figures import KEPT_PERCENTS, Figure, at_percent, number
from bench.report import Results, titles

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK = "#333333"
FAINT = "#b8bec6"
OURS = "#0072b2"
BAND = "#009e73"
SHORT = "#d55e00"
OTHERS = ("#e69f00", "#56b4e9", "#009e73", "#cc79a7", "#d55e00", "#999999", "#f0e442")
"""Okabe and Ito's colours, which differ for every kind of colour vision; the blue is Sealane's."""
DASHES: tuple[Any, ...] = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
"""Lines differ by more than their colour."""

STYLE: dict[Any, Any] = {
    "svg.hashsalt": "sealane",  # Names of elements come from the numbers and not from chance.
    "svg.fonttype": "path",  # The same everywhere, whatever fonts a reader has.
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.titlelocation": "left",
    "axes.titlesize": 11,
    "axes.titleweight": "bold",
    "axes.titlepad": 10,
    "xtick.color": INK,
    "ytick.color": INK,
    "text.color": INK,
    "grid.color": "#e6e8eb",
    "legend.frameon": False,
    "figure.facecolor": "white",
}


@dataclass(frozen=True, slots=True)
class Plot:
    title: str
    path: Path


def available() -> str | None:
    """None, or why nothing can be drawn here and what to do."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        return "no plots: matplotlib is missing; run: pip install 'sealane[bench]'"
    return None


def draw_all(directory: Path, results: Results) -> list[Plot]:
    """Every plot that there are numbers for."""
    # It draws with what is here.
    from bench import pipeline_plot as pipeline
    from bench.spark import plot as spark

    drawn: list[Plot] = []
    for name, title, draw in (
        ("throughput", "Throughput beside the peers", throughput),
        ("latency", "Latency distribution beside the peers", latency),
        ("growth", "Cost with much stored, relative to an empty node", growth),
        ("memory", "Memory under a steady load", memory),
        ("spark", "Rows a second from and into topics, beside Spark's own Parquet", spark.draw),
        ("pipeline", "What the lake's pipeline costs by the size of a backlog", pipeline.draw),
    ):
        path = directory / f"{name}.svg"
        if draw(path, results):
            drawn.append(Plot(title, path))
    return drawn


@contextmanager
def canvas(path: Path, columns: int, width: float, height: float) -> Iterator[Sequence[Axes]]:
    """Axes beside each other, written as SVG when all is drawn."""
    import matplotlib as mpl
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Sheet

    with mpl.rc_context(STYLE):
        sheet = Sheet(figsize=(width, height), layout="constrained")
        FigureCanvasSVG(sheet)
        axes = sheet.subplots(1, columns, squeeze=False)[0]
        yield list(axes)
        sheet.savefig(path, format="svg", metadata={"Date": None, "Creator": "Sealane's bench"})
    # Some of its lines end in spaces, which a diff would mark.
    lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join(line.rstrip() for line in lines) + "\n", encoding="utf-8")


def throughput(path: Path, results: Results) -> bool:
    """Bars from 0, so that their lengths are ratios; Sealane's in its own colour, memory-only ones hatched."""
    from matplotlib.ticker import MaxNLocator

    shown = [(title, found) for title, work in WORKS_BESIDE if len(found := results.of(work, "rate")) > 1]
    if not shown:
        return False
    names = titles(results.peers)
    in_memory = {system.name for system in results.peers if not system.durable}
    rows = max(len(found) for _, found in shown)
    with canvas(path, len(shown), 5.4 * len(shown), 1.2 + 0.42 * rows) as axes:
        for axis, (title, found) in zip(axes, shown, strict=True):
            ordered = sorted(found, key=lambda each: each.value)
            bars = axis.barh(
                [names[each.system] + (" (memory only)" if each.system in in_memory else "") for each in ordered],
                [each.value for each in ordered],
                height=0.62,
                color=[OURS if each.is_sealane else FAINT for each in ordered],
            )
            axis.bar_label(bars, [number(each.value) for each in ordered], padding=4)
            for label, each in zip(axis.get_yticklabels(), ordered, strict=True):
                label.set_fontweight("bold" if each.is_sealane else "normal")
            for bar, each in zip(bars, ordered, strict=True):
                if each.system in in_memory:
                    bar.set(facecolor="white", edgecolor=FAINT, hatch="///", linewidth=1)
            axis.set_xlim(0, ordered[-1].value * 1.25)
            axis.set_title(title)
            axis.set_xlabel("messages a second, end to end")
            axis.xaxis.set_major_locator(MaxNLocator(5))
            axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
            axis.grid(axis="x")
            axis.set_axisbelow(True)
            axis.tick_params(axis="y", length=0)
    return True


WORKS_BESIDE = (("Messages of 100 B", "wire-batches"), ("Messages of 1 KiB", "wire-1k"))


def short_number(value: float) -> str:
    """A number for an axis."""
    return f"{value / 1e6:.3g} M" if value >= 1e6 else f"{value / 1e3:.3g} k" if value else "0"


def latency(path: Path, results: Results) -> bool:
    """A curve of percentiles for each system, with as much room for the last per cent as for those before it."""
    from matplotlib.ticker import LogLocator, NullFormatter

    found = [figure for figure in results.of("latency", "received-p50") if figure.samples]
    if not found:
        return False
    names = titles(results.peers)
    memory_topic = results.one("latency-memory", "received-p50")
    curves: list[tuple[str, Figure, dict[str, Any]]] = []
    for index, figure in enumerate(figure for figure in found if not figure.is_sealane):
        style: dict[str, Any] = {
            "color": OTHERS[index % len(OTHERS)],
            "linestyle": DASHES[index % len(DASHES)],
            "linewidth": 1.4,
        }
        curves.append((names[figure.system], figure, style))
    for figure in found:
        if figure.is_sealane:
            curves.append(("Sealane", figure, {"color": OURS, "linewidth": 2.6}))
    if memory_topic is not None and memory_topic.samples:
        curves.append(("Sealane, topic in memory", memory_topic, {"color": OURS, "linewidth": 1.2, "linestyle": "--"}))
    with canvas(path, 1, 8.6, 4.6) as (axis,):
        for name, figure, style in curves:
            kept = [
                (percent, value)
                for percent, value in zip(KEPT_PERCENTS, figure.samples, strict=True)
                if percent < 99.95
            ]
            axis.plot([_tail(percent) for percent, _ in kept], [value for _, value in kept], label=name, **style)
        marks = (0, 50, 90, 95, 99, 99.9)
        axis.set_xticks([_tail(mark) for mark in marks], ["0", "p50", "p90", "p95", "p99", "p99.9"])
        axis.set_yscale("log")
        axis.set_title("1,000 single publishes a second: from publish to the consumer")
        axis.set_ylabel("milliseconds (log axis)")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.grid(axis="both")
        # The order of the curves at their middle, so that the list reads as the picture does.
        order = sorted(range(len(curves)), key=lambda index: -at_percent(curves[index][1].samples, 50))
        handles, labels = axis.get_legend_handles_labels()
        axis.legend(
            [handles[index] for index in order],
            [f"{labels[index]} ({number(at_percent(curves[index][1].samples, 50))} ms)" for index in order],
            title="p50, slowest first",
            alignment="left",
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
        )
    return True


def _tail(percent: float) -> float:
    """Where a percentile stands on the axis: each nine takes the same room."""
    from math import log10

    return -log10(1 - percent / 100)


def growth(path: Path, results: Results) -> bool:
    """Each cost with much in the node, relative to the same with nothing, and the band of a tenth that it may take."""
    found = [figure for figure in results.figures if figure.work.startswith("growth-") and figure.reach is not None]
    if not found:
        return False
    with canvas(path, 1, 10.0, 1.5 + 0.36 * len(found)) as (axis,):
        axis.axvspan(0.9, 1.1, color=BAND, alpha=0.14, linewidth=0)
        axis.axvline(1.0, color=INK, linewidth=0.8)
        for row, figure in enumerate(reversed(found)):
            color = SHORT if figure.reached is False else OURS
            axis.plot([min(figure.rounds), max(figure.rounds)], [row, row], color=color, alpha=0.4, linewidth=3)
            axis.plot([figure.value], [row], "o" if figure.reached else "X", color=color, markersize=8)
            axis.annotate(
                f"{figure.value:.2f}", (figure.value, row), xytext=(0, 7), textcoords="offset points", ha="center"
            )
        axis.set_yticks(range(len(found)), [figure.name for figure in reversed(found)])
        values = [value for figure in found for value in (*figure.rounds, figure.value)]
        low, high = min(0.8, *values), max(1.2, *values)
        axis.set_xlim(low - (high - low) * 0.06, high + (high - low) * 0.06)
        axis.set_ylim(-0.6, len(found) - 0.2)
        axis.set_title("Cost, relative to an empty node")
        axis.set_xlabel("× the empty node's cost; the band is 10 %, lines span the rounds")
        axis.grid(axis="x")
        axis.set_axisbelow(True)
        axis.tick_params(axis="y", length=0)
    return True


def memory(path: Path, results: Results) -> bool:
    """The node's resident memory, second by second."""
    figure = results.one("memory-over-time", "growth")
    if figure is None or len(figure.samples) < 2:
        return False
    with canvas(path, 1, 8.6, 3.2) as (axis,):
        axis.plot(range(1, len(figure.samples) + 1), figure.samples, color=OURS, linewidth=1.6)
        axis.set_ylim(0, max(figure.samples) * 1.15)
        axis.set_xlim(0, len(figure.samples))
        axis.set_title(figure.name.partition(":")[0].capitalize())
        axis.set_xlabel("seconds")
        axis.set_ylabel("MB resident")
        axis.grid(axis="y")
    return True
