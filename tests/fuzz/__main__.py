"""`python -m tests.fuzz --seconds 60`: every fuzz target in turn."""

from __future__ import annotations

import sys

from tests.fuzz import fuzz_batch

if __name__ == "__main__":
    sys.exit(fuzz_batch.main())
