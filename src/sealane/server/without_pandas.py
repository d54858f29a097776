"""Arrow without pandas, in a process that is a node and nothing else."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

import pyarrow as pa

_PANDAS = "pandas"


class _Absent(MetaPathFinder):
    """Pandas, to whoever looks for it."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None, /
    ) -> ModuleSpec | None:
        if name == _PANDAS:
            raise ModuleNotFoundError("a node goes without pandas", name=name)
        return None


def keep_pandas_out() -> None:
    """Have Arrow go without pandas in this process, unless it is loaded already.

    Arrow loads it, where it is installed, before it makes its first array or scalar of Python's values: half a second
    in which a node would serve nobody, at the first filter or the first key, and 45 MB. It looks once, and here it
    finds none. Everybody else can still load it.
    """
    if _PANDAS in sys.modules:
        return
    absent = _Absent()
    sys.meta_path.insert(0, absent)
    try:
        # Two parts of Arrow look for it, one in Python and one in C++.
        pa.array([1]).to_numpy()
    finally:
        sys.meta_path.remove(absent)
