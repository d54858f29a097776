"""The Spark of a measurement: on this machine, two cores, everything else at its default."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MASTER = "local[2]"
DRIVER_MEMORY = "1g"


def missing() -> str | None:
    """None, or why Spark cannot be measured here and what to do."""
    if find_spec("pyspark") is None:
        return "spark: pyspark is not installed; run: pip install 'sealane[spark]'"
    home = os.environ.get("JAVA_HOME")
    if shutil.which("java", path=f"{home}/bin" if home else None) is None:
        return "spark: there is no Java (java); run: apt-get install openjdk-17-jre-headless"
    return None


def session(directory: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """A session whose workers run this Python, that keeps its files below a directory and says only what fails.

    It ends with the process: PySpark's JVM stays until then, whatever is stopped.
    """
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master(MASTER).appName("Sealane's bench")
    own = {
        "spark.driver.memory": DRIVER_MEMORY,
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.local.dir": str(directory / "local"),
        "spark.log.level": "ERROR",
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    for name, value in {**own, **(settings or {})}.items():
        builder = builder.config(name, value)
    return builder.getOrCreate()


def sealane_session(directory: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """The same, and it knows `format("sealane")`."""
    # Named here: earlier revisions, which are compared with this one, do not have it.
    import sealane.spark

    made = session(directory, settings)
    sealane.spark.register(made)
    return made
