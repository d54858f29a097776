"""One round of a work in a process of its own: `python -m bench.one_round WORK DIRECTORY quick|full`.

It ends with a line of JSON. Whatever `sealane` this process imports is measured, in the node and the clients that it
starts too; the line says which one that was.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

import sealane
from bench.works import WORKS

MODULE = "bench.one_round"


def imported_by_children() -> str:
    """The package as processes find it that are started from here, as a node is: without Sealane's own settings."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("SEALANE_")}
    found = subprocess.run(
        [sys.executable, "-c", "import sealane; print(sealane.__file__)"],
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return found.stdout.strip()


def main() -> None:
    name, directory, quick = sys.argv[1:]
    work = WORKS[name]
    packages = [str(Path(sealane.__file__).parent), str(Path(imported_by_children()).parent)]
    reading = work.measure(Path(directory), work.amounts_for(quick == "quick"))
    values = {part.name: statistics.median(found) for part in work.parts if (found := reading.of(part.name))}
    print(json.dumps({"values": values, "packages": packages}))


if __name__ == "__main__":
    main()
