"""`python -m tests.fuzz --minutes 5`: every target in turn, each for so long; `--only NAME` for some of them.

With atheris installed (`pip install atheris`) runs are guided by coverage. Inputs that reach something new are kept in
`corpus/`, an input that finds a bug in `found/`: from then on every `make test` tries it.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from tests.fuzz import guided
from tests.fuzz.keeping import FOUND, keep
from tests.fuzz.sessions import guided_session, keep_fresh, plain_session
from tests.fuzz.targets import NAMES, load


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=1.0, help="for each target (1)")
    parser.add_argument("--only", action="append", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}")
    parser.add_argument("--seed", type=int, help="makes the same run again, as far as runs are alike")
    parser.add_argument("--plain", action="store_true", help="without atheris, even if it is installed")
    parser.add_argument("--take", metavar="FOLDER", help="keep what is worth it of the inputs there, and end")
    parser.add_argument("--keep", metavar="HEX", help="keep this input of the one target as a finding, and end")
    options = parser.parse_args(arguments)
    names: Sequence[str] = options.only or NAMES
    if (options.keep or options.take) and len(names) != 1:
        parser.error("--keep and --take need to know whose inputs they are: --only NAME")
    if options.keep is not None:
        print(f"kept as {keep(FOUND, names[0], bytes.fromhex(options.keep))}")
        return 0
    if options.take is not None:
        inputs = [path.read_bytes() for path in Path(options.take).iterdir() if path.is_file()]
        print(f"{names[0]}: {keep_fresh(load(names[0]), inputs)} of {len(inputs):,} kept")
        return 0
    seed = int(time.time()) % 2**31 if options.seed is None else options.seed
    session = plain_session if options.plain or not guided.is_installed() else guided_session
    failed = [name for name in names if not session(load(name), options.minutes * 60, seed)]
    if failed:
        print(f"bugs were found in: {', '.join(failed)}; their inputs are in {FOUND}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
