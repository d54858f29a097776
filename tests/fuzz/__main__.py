"""`python -m tests.fuzz --seconds 60`: every fuzz target in turn, each for that long."""

from __future__ import annotations

import sys

from tests.fuzz import fuzz_batch, fuzz_native

if __name__ == "__main__":
    sys.exit(fuzz_batch.main() or fuzz_native.main())
