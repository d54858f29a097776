"""Arrow's compute functions, loaded when one of them is used for the first time.

They take nine megabytes and some hundredths of a second to load, and most nodes and clients have no need of them: plain
messages are granted, delivered and acked without a look at their columns.
"""

from __future__ import annotations

from typing import Any


class _Compute:
    """Stands for the module `pyarrow.compute`."""

    def __getattr__(self, name: str) -> Any:
        import pyarrow.compute

        function = getattr(pyarrow.compute, name)
        setattr(self, name, function)  # From now on it is found without this.
        return function


pc = _Compute()
