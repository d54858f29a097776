"""`python -m bench`: measure Sealane and its peers, and write tables, plots and raw numbers into `bench/results/`."""

from __future__ import annotations

import argparse
import shlex
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from bench import whole_run
from bench.report import PEERS
from bench.whole_run import Choice, chosen_works
from bench.works import GROUPS, WORKS

RESULTS = Path(__file__).parent / "results"
ROUNDS = 5
COMPARE_ROUNDS = 10

EXAMPLES = """
examples:
  python -m bench --list                        what can be measured, and what is asked of it
  python -m bench --quick                       a look at everything in under two minutes, into results/quick
  python -m bench                               everything, in about half an hour
  python -m bench --only peers                  beside the peers: throughput and latency
  python -m bench --only latency                the latency again, of Sealane alone; the rest of the tables stays
  python -m bench --only latency --peers redis-aof-always
  python -m bench --compare main~5 .            whether the working tree is faster than five commits ago
  python -m bench --compare v0.1 . --only wire-one-by-one --rounds 20 --json
  python -m bench --flame wire-one-by-one       where the node's time goes, as a flame graph

`make bench ARGS="…"` is the same. Measure on a machine that does nothing else: each figure stands beside the share of
processor time that others took meanwhile. The exit code is 1 if something failed, and 0 where only a reach was missed.
"""


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(
        prog="python -m bench",
        description=__doc__,
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    names = (PEERS, *GROUPS, *WORKS)
    add = made.add_argument
    add("--list", action="store_true", help="show what can be measured")
    add("--quick", action="store_true", help="little of everything, one round, for a look and not for the record")
    add("--only", nargs="+", choices=names, metavar="NAME", help="these works and groups (see --list)")
    add("--rounds", type=_positive, help=f"default {ROUNDS}; {COMPARE_ROUNDS} to compare; 1 when it is quick")
    add(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where data is written; its disk is measured",
    )
    add("--results", type=Path, help="where tables and numbers go (default: bench/results, and its quick/)")
    some = made.add_mutually_exclusive_group()
    some.add_argument(
        "--peers", nargs="*", metavar="PEER", help="with all peers, or these, where only Sealane's works are named"
    )
    some.add_argument("--no-peers", action="store_true", help="Sealane alone")
    add("--pages", action="store_true", help="measure nothing; make tables and plots of the numbers that are there")
    add(
        "--compare",
        nargs=2,
        metavar=("A", "B"),
        help="two revisions, or checkouts: is B faster than A? `.` is this tree",
    )
    add("--json", action="store_true", help="with --compare: print the numbers for a program")
    add("--flame", metavar="WORK", choices=tuple(WORKS), help="record a flame graph of the node, by py-spy")
    add("--flame-client", action="store_true", help="with --flame: of the clients too")
    add("--profile", action="store_true", help="write profiles of the works inside one process, by function")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    asked = parser().parse_args(arguments)
    console = Console(stderr=asked.json)
    results = asked.results or (RESULTS / "quick" if asked.quick else RESULTS)
    if asked.list:
        console.print(whole_run.overview())
        return 0
    if asked.pages:
        whole_run.write_pages(results, console)
        return 0
    if asked.compare:
        from bench import compare

        works = chosen_works(asked.only or compare.WORKS)
        rounds = asked.rounds or COMPARE_ROUNDS
        first, second = asked.compare
        return compare.main(first, second, works, rounds, asked.quick, asked.directory, asked.json, console)
    if asked.flame or asked.profile:
        from bench import flames

        if asked.profile:
            return flames.profile_all(results, asked.directory, console)
        return flames.main(WORKS[asked.flame], results, asked.directory, asked.flame_client, asked.quick, console)
    given = list(sys.argv[1:] if arguments is None else arguments)
    choice = Choice(
        works=chosen_works(asked.only or [name for name, work in WORKS.items() if work.in_quick or not asked.quick]),
        peers=_peers(asked),
        rounds=asked.rounds or (1 if asked.quick else ROUNDS),
        quick=asked.quick,
        directory=asked.directory,
        results=results,
        command=f'make bench ARGS="{shlex.join(given)}"' if given else "make bench",
    )
    try:
        return whole_run.run(choice, console)
    except KeyboardInterrupt:
        console.print("broken off; what was measured until then is kept")
        whole_run.write_pages(results, console)
        return 130


def _peers(asked: argparse.Namespace) -> list[str] | None:
    """Peers take part when everything is measured, or when they are asked for."""
    if asked.no_peers:
        return None
    if asked.peers is not None:
        return list(asked.peers)
    return [] if asked.only is None or PEERS in asked.only else None


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
