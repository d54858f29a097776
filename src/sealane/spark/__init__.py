"""Topics as DataFrames: `format("sealane")` for Spark's readers and writers, batch and streaming.

import sealane.spark

sealane.spark.register(spark)
orders = spark.readStream.format("sealane").option("topic", "orders").load()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sealane.spark.registering import register
    from sealane.spark.sessions import session

__all__ = ["register", "session"]

_HOMES = {"register": "sealane.spark.registering", "session": "sealane.spark.sessions"}


def __getattr__(name: str) -> Any:
    """Load a part when it is first asked for: executors need neither of them."""
    if name in _HOMES:
        from importlib import import_module

        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'sealane.spark' has no attribute {name!r}")
