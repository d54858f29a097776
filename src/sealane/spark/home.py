"""The home of Spark for a session on this machine: one whose Python processes start in a third of the time.

Spark's Java has every Python process that it starts import `pyspark` from `python/lib/pyspark.zip` of its home. The zip
holds no compiled code, so that each of them compiles all that it loads, and a streaming source that is not there after
ten seconds fails its query, however busy the machine is. In a home without that zip they load the installed package,
which was compiled once.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark

from sealane.spark.registering import LOCAL_MASTER, WORKER_PYTHON

HOME = "SPARK_HOME"
"""The environment variable by which a user says which Spark is meant; without it that is the installed package."""
PARTS = ("bin", "conf", "jars", "sbin")
"""What a home is made of, for a driver: the zip is in another part."""


@contextmanager
def home_of_compiled_code(master: str) -> Iterator[None]:
    """Java that is started within the block has such a home, unless somebody else has chosen one, or may need the zip:
    workers elsewhere, or those that run on another Python.
    """
    is_ours = HOME not in os.environ and master.startswith(LOCAL_MASTER)
    home = linked_home() if is_ours and os.environ.get(WORKER_PYTHON) == sys.executable else None
    if home is None:
        yield
        return
    os.environ[HOME] = str(home)
    try:
        yield
    finally:
        os.environ.pop(HOME, None)


def linked_home() -> Path | None:
    """Links to the parts of the installed package, or None where there can be none. It stays, since Java looks for its
    classes there to its end.
    """
    package = Path(pyspark.__file__).parent
    home = _cache_directory() / f"spark-{hashlib.sha256(os.fsencode(package)).hexdigest()[:16]}"
    try:
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in PARTS:
            if not _leads_to(home / part, package / part):
                _link(home / part, package / part)
    except OSError:
        return None
    return home


def _leads_to(link: Path, place: Path) -> bool:
    return link.is_symlink() and link.readlink() == place


def _link(link: Path, place: Path) -> None:
    """At once, since others may be starting from the same home."""
    with tempfile.TemporaryDirectory(dir=link.parent) as directory:
        new = Path(directory) / link.name
        new.symlink_to(place)
        new.replace(link)


def _cache_directory() -> Path:
    """`~/.cache/sealane`, or where the user keeps such things."""
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "sealane"
