"""Whether Spark can run here."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

JAVA_INSTALL = "apt-get install default-jre-headless"
SHORT_LIVED = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
"""Options of Java for a process that ends before it were worth compiling well, beside others on few cores."""


def has_java() -> bool:
    """Where Spark looks for it: in `JAVA_HOME` if that is set, else on the PATH."""
    home = os.environ.get("JAVA_HOME")
    return shutil.which(str(Path(home) / "bin" / "java") if home else "java") is not None
