"""What has stopped the pipeline, in words: Spark tells it in many, of which few help."""

from __future__ import annotations

import errno
import os
import re
import shutil
import tempfile
from pathlib import Path

from sealane.errors import SealaneError

_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_SPACE_TEXTS = tuple(os.strerror(number) for number in _NO_SPACE)
"""As Java says it too."""
_OWN_ERROR = re.compile(r"^(?:\w+\.)*sealane\.[\w.]+: (.+)$", re.MULTILINE)
"""One of Sealane's own, as the last line of a worker's traceback within what Spark says."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)


class LakeFull(SealaneError):
    """There is no space left for what a step writes. `lake` is where the tables are."""

    def __init__(self, lake: Path) -> None:
        self.lake = lake
        places = {"the lake": lake, "Spark's temporary files": Path(tempfile.gettempdir())}
        left = " and ".join(f"{name} in {path} ({_free_mebibytes(path):,} MiB left)" for name, path in places.items())
        super().__init__(
            f"no space is left on a disk of the pipeline: look at {left}; free some, keep fewer days by --keep, or "
            "move the lake and say where it is by --lake. The tables are whole: the next run goes on where this one was"
        )


class StepFailed(SealaneError):
    """A query of the pipeline was stopped. `query` is its name, `reason` the innermost that is known."""

    def __init__(self, query: str, lake: Path, reason: str) -> None:
        self.query = query
        self.lake = lake
        self.reason = reason
        super().__init__(
            f"the step {query!r} of the lake {lake} was stopped: {reason}. The tables are whole: the next run goes on "
            "where this one was"
        )


def is_no_space(error: BaseException) -> bool:
    """Whether a disk or a quota is full, by Python's error or by what Spark says of Java's."""
    if isinstance(error, OSError) and error.errno in _NO_SPACE:
        return True
    return is_sparks(error) and any(text in str(error) for text in _NO_SPACE_TEXTS)


def reason_of(error: BaseException) -> str:
    """One line: what Sealane said, if it did, or the innermost cause."""
    text = str(error)
    found = _OWN_ERROR.findall(text) or _CAUSE.findall(text) or [text]
    return " ".join(found[-1].split("\n", 1)[0].split()) or type(error).__name__


def is_sparks(error: BaseException) -> bool:
    """Whether Spark or Java raised it."""
    return type(error).__module__.startswith(("pyspark.", "py4j."))


def _free_mebibytes(path: Path) -> int:
    while not path.exists():
        path = path.parent
    return shutil.disk_usage(path).free >> 20
