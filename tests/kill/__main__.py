"""`python -m tests.kill [--rounds N] [--seed S]`: kill a node under load, and see whether it keeps its word."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import shutil
import sys
import tempfile
from pathlib import Path

from tests.kill.rounds import Killing


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--seed", type=int, default=None, help="of an earlier run, to have its moments again")
    parser.add_argument("--directory", type=Path, default=None, help="keep everything here")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    directory = options.directory or Path(tempfile.mkdtemp(prefix="sealane-kill-"))
    directory.mkdir(parents=True, exist_ok=True)
    print(f"seed {seed}, in {directory}", flush=True)
    killing = Killing(directory, seed, lambda line: print(line, flush=True))
    report = asyncio.run(killing.run(options.rounds))
    print("\n".join(report.lines()))
    if report.violations:
        print(f"again with: python -m tests.kill --rounds {options.rounds} --seed {seed}; records are in {directory}")
        sys.exit(1)
    if options.directory is None:
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
