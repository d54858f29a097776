"""The plot of Spark: rows a second from and into topics, beside what Spark does with Parquet."""

from __future__ import annotations

from pathlib import Path

from bench.plots import FAINT, OURS, canvas, short_number
from bench.report import Results

PANELS = (
    (
        "Into nothing",
        (
            ("its own Parquet files", "spark-source", "parquet"),
            ("a topic", "spark-source", "plain"),
            ("a topic, over TLS", "spark-source", "tls"),
            ("a source of tuples", "spark-source", "tuples"),
        ),
    ),
    (
        "Into Parquet files",
        (
            ("its own Parquet files", "spark-source", "parquet-to-parquet"),
            ("a topic", "spark-source", "plain-to-parquet"),
        ),
    ),
    (
        "From Spark's memory",
        (
            ("into Parquet files", "spark-sink", "into-parquet"),
            ("into a topic", "spark-sink", "plain"),
        ),
    ),
)
"""Bars that may be compared: what each is called, and which figure it is. A topic's are in Sealane's colour."""


def draw(path: Path, results: Results) -> bool:
    """Bars from 0, so that their lengths are ratios. False where there is nothing to draw."""
    from matplotlib.ticker import MaxNLocator

    panels = [
        (title, found)
        for title, bars in PANELS
        if (found := [(name, figure) for name, *which in bars if (figure := results.one(*which)) is not None])
    ]
    if not panels:
        return False
    rows = max(len(found) for _, found in panels)
    with canvas(path, len(panels), 4.6 * len(panels), 1.2 + 0.42 * rows) as axes:
        for axis, (title, found) in zip(axes, panels, strict=True):
            upwards = found[::-1]
            bars = axis.barh(
                [name for name, _ in upwards],
                [figure.value for _, figure in upwards],
                height=0.62,
                color=[OURS if "a topic" in name else FAINT for name, _ in upwards],
            )
            axis.bar_label(bars, [short_number(figure.value) for _, figure in upwards], padding=4)
            axis.set_xlim(0, max(figure.value for _, figure in found) * 1.25)
            axis.set_ylim(-0.6, rows - 0.4)
            axis.set_title(title)
            axis.set_xlabel("rows of 100 B a second")
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.xaxis.set_major_formatter(lambda value, _: short_number(value))
            axis.grid(axis="x")
            axis.set_axisbelow(True)
            axis.tick_params(axis="y", length=0)
    return True
