"""`python -m tests.simulation`: run seeds, replay one, or show that a planted bug is found."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.simulation.planted import PLANTED, hunt
from tests.simulation.scenario import Scenario
from tests.simulation.scenarios import SCENARIOS, draw, play
from tests.simulation.seeds import Tally, run_seeds
from tests.simulation.shrink import shrink
from tests.simulation.world import Report

SHRUNK = Path(".cache/simulation")
"""Where the shrunk scenarios of failing seeds are kept, to be replayed."""

FAILURES_TOLD_MAX = 3
"""How many failing seeds are shrunk and told in full; of the others only the number is."""


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seeds", type=int, default=200, help="how many seeds to run (default 200)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default 0)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--scenario", choices=sorted(SCENARIOS), help="only this one (default: each in turn)")
    parser.add_argument("--seed", type=int, help="run this one seed and show what is wrong")
    parser.add_argument("--replay", type=Path, metavar="FILE", help="run a scenario that was written down")
    parser.add_argument("--trace", action="store_true", help="show everything that happens")
    parser.add_argument("--no-shrink", action="store_true", help="do not look for a smaller scenario that fails")
    parser.add_argument("--planted", action="store_true", help="show for each planted bug which seed finds it")
    options = parser.parse_args(arguments)
    if options.planted:
        return _hunt_all()
    trace: Callable[[str], None] | None = print if options.trace else None
    if options.replay is not None:
        return _tell(play(Scenario.from_json(options.replay.read_text()), trace=trace), shrinking=False)
    if options.seed is not None:
        report = play(draw(options.seed, options.scenario), trace=trace)
        return _tell(report, shrinking=not options.no_shrink and not options.trace)
    seeds = range(options.first, options.first + options.seeds)
    tally = run_seeds(seeds, options.scenario, jobs=options.jobs, progress=_progress(len(seeds)))
    print(f"\r{tally}" + " " * 20)
    for outcome in tally.failed[:FAILURES_TOLD_MAX]:
        print()
        _tell(play(draw(outcome.seed, outcome.scenario)), shrinking=not options.no_shrink)
    if tally.failed:
        print("\nfailed seeds:", *(f"{outcome.seed} ({outcome.scenario})" for outcome in tally.failed))
    return 1 if tally.failed else 0


def _progress(total: int) -> Callable[[Tally], None]:
    def show(tally: Tally) -> None:
        print(f"\r{len(tally.outcomes)}/{total}: {tally}", end="", flush=True)

    return show if sys.stdout.isatty() else lambda tally: None


def _tell(report: Report, *, shrinking: bool) -> int:
    scenario = report.scenario
    print(f"seed {scenario.seed}, scenario {scenario.name}: {'FAILED' if report.failed else 'sound'}")
    for violation in report.violations:
        print(f"  {violation}")
    if not report.failed:
        print(
            f"  {report.lives} lives, {report.steps:,} steps, {report.operations:,} disk operations, "
            f"{report.faults_happened} faults, {report.virtual_seconds:,.1f} virtual seconds, digest {report.digest}"
        )
        return 0
    print(f"replay: python -m tests.simulation --seed {scenario.seed} --scenario {scenario.name} --trace")
    if shrinking:
        small = shrink(scenario, play)
        SHRUNK.mkdir(parents=True, exist_ok=True)
        path = SHRUNK / f"{scenario.name}-{scenario.seed}.json"
        path.write_text(small.to_json())
        print(f"shrunk from {len(scenario.parts)} parts to {len(small.parts)}:\n{small}")
        for violation in play(small).violations:
            print(f"  {violation}")
        print(f"replay the shrunk one: python -m tests.simulation --replay {path} --trace")
    return 1


def _hunt_all() -> int:
    missed = 0
    for planted in PLANTED:
        found = hunt(planted)
        missed += found is None
        print(f"{planted.name}: " + (f"seed {found.seed}, {found.oracle}: {found.problem}" if found else "NOT FOUND"))
    return 1 if missed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        # The order of sets of text depends on it, and a seed must mean the same in every process.
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "tests.simulation", *sys.argv[1:]])
    sys.exit(main(sys.argv[1:]))
