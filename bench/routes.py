"""What learned routes gain beside static hashing and round robin, on simulated swarms.

`python -m bench.routes` draws docs/images/route-learning.svg; `--telemetry FILE` writes the recording of the tests.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.plots import FAINT, INK, OURS, canvas
from sealane.pipeline.routes.evaluation import FIRST_HOUR, WAYS, Outcome, Way, gains, judged, trained
from sealane.pipeline.routes.generating import generated
from sealane.pipeline.routes.scenarios import SCENARIOS, UNEVEN
from sealane.pipeline.routes.simulation import Scenario

PLOT = Path(__file__).parents[1] / "docs" / "images" / "route-learning.svg"
TRAINING_SEEDS = (1, 2)
SEEDS = tuple(range(101, 109))
TRAINING_DAYS = 4
RECORDED_HOURS = 30

Outcomes = Mapping[str, Mapping[Way, Outcome]]

TITLES = {
    "uneven": "Uneven: 26 to 60 a second",
    "slow": "Slow: one of six, by 60 %",
    "failing": "Failing: one of six, at times",
    "busy days": "Busy days: slow from 9 to 5",
}
NAMES: Mapping[Way, str] = {
    "hashing": "static hashing",
    "in turn": "round robin",
    "by capacity": "by stated capacity",
    "learned": "learned weights",
}


def outcomes(scenarios: Sequence[Scenario] = SCENARIOS, *, seeds: Sequence[int] = SEEDS) -> Outcomes:
    """Each way in each scenario, by weights that were learned on other seeds."""
    found = {}
    for scenario in scenarios:
        training = trained(scenario, seeds=TRAINING_SEEDS, days=TRAINING_DAYS)
        found[scenario.name] = judged(scenario, training, seeds=seeds)
    return found


def draw(path: Path, found: Outcomes) -> None:
    """A panel for each scenario: the 99th percentile as a bar from 0, and the median as a line across it."""
    from matplotlib.ticker import MaxNLocator

    with canvas(path, len(found), 3.3 * len(found), 2.9) as axes:
        for axis, (name, ways) in zip(axes, found.items(), strict=True):
            upwards = [(way, ways[way]) for way in reversed(WAYS)]
            bars = axis.barh(
                [NAMES[way] for way, _ in upwards],
                [outcome.p99_ms for _, outcome in upwards],
                height=0.62,
                color=[OURS if way == "learned" else FAINT for way, _ in upwards],
            )
            axis.bar_label(bars, [f"{outcome.p99_ms:,.0f}" for _, outcome in upwards], padding=4)
            for row, (way, outcome) in enumerate(upwards):
                color = "white" if way == "learned" else INK
                axis.plot([outcome.p50_ms] * 2, [row - 0.31, row + 0.31], color=color, linewidth=1.6)
            axis.get_yticklabels()[0].set_fontweight("bold")
            axis.set_xlim(0, max(outcome.p99_ms for _, outcome in upwards) * 1.25)
            axis.set_title(TITLES[name])
            axis.xaxis.set_major_locator(MaxNLocator(4))
            axis.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
            axis.set_xlabel("ms: p99 (bar), median (line)")
            axis.grid(axis="x")
            axis.set_axisbelow(True)
            axis.tick_params(axis="y", length=0)
            if axis is not axes[0]:
                axis.tick_params(axis="y", labelleft=False)


def told(found: Outcomes) -> str:
    """A table in Markdown."""
    lines = [
        "| scenario | way | p50 | p99 | failed attempts | p99 of learned weights is lower by |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for name, ways in found.items():
        lower = gains(ways)
        for way in WAYS:
            each = ways[way]
            gain = f"{100 * lower[way]:.0f} %" if way in lower else ""
            latencies = f"{each.p50_ms:.0f} ms | {each.p99_ms:,.0f} ms"
            lines.append(f"| {name} | {NAMES[way]} | {latencies} | {100 * each.failures:.2f} % | {gain} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.routes", description=__doc__)
    parser.add_argument("--plot", type=Path, default=PLOT, help="where the picture goes")
    parser.add_argument("--telemetry", type=Path, metavar="FILE", help="only write the recording that tests have")
    asked = parser.parse_args()
    if asked.telemetry:
        import pyarrow.parquet as pq

        origins = ("edge-1", "edge-2")
        recording = generated(UNEVEN, seed=11, first_hour=FIRST_HOUR, hours=RECORDED_HOURS, origins=origins)
        pq.write_table(recording, asked.telemetry, compression="zstd")
        return
    found = outcomes()
    draw(asked.plot, found)
    print(told(found))


if __name__ == "__main__":
    main()
