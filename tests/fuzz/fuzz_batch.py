"""Fuzz the batch decoder: `python tests/fuzz/fuzz_batch.py --iterations 100000 --seed 7`.

With atheris installed (`pip install atheris`) and `--coverage` it is guided by coverage; otherwise the built-in mutator
spoils valid encodings. The same seed gives the same run. A failure prints the seed, the iteration and the bytes.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Sequence
from pathlib import Path

if __package__ in (None, ""):
    sys.path[:0] = [str(Path(__file__).parents[2] / folder) for folder in ("src", "")]

from tests.fuzz.mutation import SEEDS, check, mutate


def run(*, seed: int, iterations: int | None = None, seconds_max: float | None = None) -> tuple[int, int]:
    """Try mutations until either bound is reached; how many were tried, and how many of them were still batches."""
    choose = random.Random(seed)
    deadline = None if seconds_max is None else time.monotonic() + seconds_max
    corpus = list(SEEDS)
    tried = accepted = 0
    while (iterations is None or tried < iterations) and (deadline is None or time.monotonic() < deadline):
        data = mutate(choose.choice(corpus), choose)
        try:
            batch = check(data)
        except BaseException:
            print(f"seed {seed}, iteration {tried}, bytes {data.hex()}", file=sys.stderr)
            raise
        tried += 1
        if batch is not None:
            accepted += 1
            # What is still sound is a start for deeper changes; a bounded corpus keeps the first seeds in play.
            if len(corpus) < 256:
                corpus.append(data)
    return tried, accepted


def run_guided(arguments: Sequence[str]) -> None:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    atheris.Setup([sys.argv[0], *arguments], check)
    atheris.Fuzz()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, help="how many mutations to try")
    parser.add_argument("--seconds", type=float, help="how long to go on")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--coverage", action="store_true", help="use atheris; further arguments are libFuzzer's")
    options, further = parser.parse_known_args(arguments)
    if options.coverage:
        run_guided(further)
        return 0
    if further:
        parser.error(f"unknown arguments: {' '.join(further)}")
    iterations = options.iterations
    if iterations is None and options.seconds is None:
        iterations = 10_000
    tried, accepted = run(seed=options.seed, iterations=iterations, seconds_max=options.seconds)
    print(f"seed {options.seed}: {tried:,} mutations, {accepted:,} still batches, the rest refused, no failure")
    return 0


if __name__ == "__main__":
    sys.exit(main())
