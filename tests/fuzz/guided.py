"""One target under atheris, in a process of its own: `python -m tests.fuzz.guided NAME CORPUS [libFuzzer's flags]`.

libFuzzer ends the process at the first finding, with the input in the file that it names. Nothing of Sealane may be
imported before it is instrumented, so everything is imported late here.
"""

from __future__ import annotations

import random
import sys
from importlib.util import find_spec

MEMORY_MIB_MAX = 2_048
"""Of the whole process: a fresh one takes a tenth of it."""
INPUT_SECONDS_MAX = 60
"""For one input, by the clock on the wall: machines are busy."""
SLOW = ("slow-unit-", "timeout-")
"""How libFuzzer names an input that it thinks took long."""
SLOW_SECONDS = 10
"""Where that begins."""
OWN_SPOILS = 0.5
"""So many of the inputs are spoiled in the way of their format; libFuzzer makes the others."""


def is_installed() -> bool:
    return find_spec("atheris") is not None


def command(name: str, corpus: str, artifacts: str, seconds: int, seed: int) -> list[str]:
    """What runs a target for so long."""
    return [
        *(sys.executable, "-m", "tests.fuzz.guided", name, corpus),
        *(f"-max_total_time={seconds}", f"-seed={seed}", f"-artifact_prefix={artifacts}/"),
        *(f"-rss_limit_mb={MEMORY_MIB_MAX}", f"-timeout={INPUT_SECONDS_MAX}"),
        *("-print_final_stats=1", "-detect_leaks=0"),
    ]


def command_for_one(name: str, path: str) -> list[str]:
    """What tries one input, and fails as a run would that meets it."""
    return [sys.executable, "-m", "tests.fuzz.guided", name, path, f"-timeout={SLOW_SECONDS}"]


def main() -> None:
    import atheris  # type: ignore[import-not-found, import-untyped, unused-ignore]

    name, *flags = sys.argv[1:]
    with atheris.instrument_imports(include=["sealane"]):
        from tests.fuzz.targets import load

        target = load(name)
        for seed in target.seeds:
            target.check(seed)  # Some of what it needs is imported only when it is first used.
    from tests.fuzz.running import quiet

    def one_input(data: bytes) -> None:
        target.check(data)

    def spoiled(data: bytes, bytes_max: int, seed: int) -> bytes:
        choose = random.Random(seed)
        if choose.random() < OWN_SPOILS:
            return target.spoil(data, choose)[:bytes_max]
        return bytes(atheris.Mutate(data, bytes_max))

    with quiet():
        atheris.Setup([name, *flags, f"-max_len={target.bytes_max}"], one_input, custom_mutator=spoiled)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
