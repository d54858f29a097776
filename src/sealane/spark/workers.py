"""A Python worker of Spark's, which is used for one task after the other."""

from __future__ import annotations

import gc

from pyspark import TaskContext


def begin_task() -> None:
    """Call it first in whatever Spark runs on an executor.

    After each task a worker looks through all of its objects for garbage, most of which are modules that were loaded
    once. What is there when the next task begins has outlived such a look and stays, so that no later one needs to come
    by it.
    """
    if TaskContext.get() is not None:  # Elsewhere the process is somebody else's.
        gc.freeze()
