"""Workers that have no Sealane: the data source carries the package with it, and unpacks it where it arrives.

Everything in this module is pickled by value (`shipped` says so), since it is what runs before the package is there:
nothing in it may need Sealane at its first step. What Spark makes on the way travels in the same manner. Spark's Python
on the driver makes the readers and writers, and pickles them for executors; they come out of an envelope that unpacks
the package first (`_sent`, `_received`). Partitions and commit messages are only ever opened after one of those.
"""

from __future__ import annotations

import copyreg
import fcntl
import hashlib
import importlib
import importlib.util
import io
import os
import pickle
import shutil
import socket
import stat
import sys
import tempfile
import zipfile
import zlib
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from pyspark import cloudpickle
from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    from pyspark.sql.datasource import (
        DataSourceReader,
        DataSourceStreamReader,
        DataSourceStreamWriter,
        DataSourceWriter,
    )
    from pyspark.sql.types import StructType

NEEDS = {
    "cryptography": "cryptography>=47",
    "msgspec": "msgspec>=0.19",
    "numpy": "numpy>=2.1",
    "pyarrow": "pyarrow>=20",
    "pyroaring": "pyroaring>=1.0",
    "structlog": "structlog>=24",
    "uvloop": "uvloop>=0.21",
    "xxhash": "xxhash>=3.5",
}
"""What must be installed where a worker runs, by the name it is imported by: compiled packages do not travel."""
DIGEST_LETTERS = 32
OTHERS = 0o077

T = TypeVar("T")


def shipped(package: bytes) -> type[DataSource]:
    """A data source for Spark to register, which brings this package (see `parcel`) to wherever it is used."""
    cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]

    class Shipped(ShippedDataSource):
        pass

    Shipped.package = package
    return Shipped


class ShippedDataSource(DataSource):
    """`SealaneDataSource`, which is unpacked first."""

    package: ClassVar[bytes]

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._unpacked()

    @classmethod
    def name(cls) -> str:
        return "sealane"

    def schema(self) -> StructType | str:
        return self._unpacked().schema()

    def reader(self, schema: StructType) -> DataSourceReader:
        return _traveller(self.package, self._unpacked().reader(schema))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        return _traveller(self.package, self._unpacked().streamReader(schema))

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        return _traveller(self.package, self._unpacked().writer(schema, overwrite))

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        return _traveller(self.package, self._unpacked().streamWriter(schema, overwrite))

    def _unpacked(self) -> DataSource:
        _unpack(self.package)
        source: type[DataSource] = importlib.import_module("sealane.spark.data_source").SealaneDataSource
        return source(self.options)


# --- what travels -----------------------------------------------------------------------------------------------------


def _traveller(package: bytes, made: T) -> T:
    """The same, which from now on brings the package along when it is pickled in this process."""
    copyreg.pickle(type(made), partial(_sent, package))
    return made


def _sent(package: bytes, made: object) -> tuple[Any, ...]:
    """How to pickle it: as an envelope that needs nothing but this module to be opened."""
    usual = {kind: how for kind, how in cloudpickle.CloudPickler.dispatch_table.items() if kind is not type(made)}
    # A pickler looks for its table when it is made.
    pickler: Any = type("UsualPickler", (cloudpickle.CloudPickler,), {"dispatch_table": usual})
    written = io.BytesIO()
    pickler(written).dump(made)
    return _received, (package, written.getvalue())


def _received(package: bytes, content: bytes) -> object:
    _unpack(package)
    return pickle.loads(content)  # noqa: S301 - it came as part of a pickle


# --- unpacking --------------------------------------------------------------------------------------------------------


def _unpack(package: bytes) -> None:
    """From now on `import sealane` finds this package, in this process."""
    digest = hashlib.sha256(package).hexdigest()[:DIGEST_LETTERS]
    present = sys.modules.get("sealane")
    if present is not None and Path(str(present.__file__)).parts[-3] == digest:
        return
    _check_needs()
    home = _unpacked_at(digest, package)
    # A process that serves one query after the other may have served one that came with another version, or run where
    # yet another is installed.
    for name in [name for name in sys.modules if name.partition(".")[0] == "sealane"]:
        del sys.modules[name]
    sys.path[:] = [str(home), *(path for path in sys.path if Path(path).parent != home.parent)]
    importlib.invalidate_caches()


def _check_needs() -> None:
    missing = [line for name, line in NEEDS.items() if importlib.util.find_spec(name) is None]
    if missing:
        install = " ".join(f"'{line}'" for line in missing)
        raise ModuleNotFoundError(
            f"Sealane came by value to {socket.gethostname()}, where {sys.executable} lacks what it needs; install it "
            f"on every worker: {sys.executable} -m pip install {install}"
        )


def _unpacked_at(digest: str, package: bytes) -> Path:
    """The folder that holds the package's files; the processes of a machine share it."""
    folder = _private_folder()
    home = folder / digest
    with zipfile.ZipFile(io.BytesIO(zlib.decompress(package))) as archive, (folder / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not _is_whole(home, archive):
            # Whatever cleans temporary folders up may have taken a part of it.
            shutil.rmtree(home, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=folder) as fresh:
                archive.extractall(Path(fresh) / digest)
                (Path(fresh) / digest).rename(home)
    return home


def _private_folder() -> Path:
    """One that nobody else can put code into."""
    folder = Path(tempfile.gettempdir()) / f"sealane-{os.getuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=stat.S_IRWXU)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & OTHERS:
        raise PermissionError(
            f"{folder} on {socket.gethostname()} is not a folder that user {os.getuid()} alone may change, so no code "
            "is run from it; remove it, or give workers another TMPDIR"
        )
    return folder


def _is_whole(home: Path, archive: zipfile.ZipFile) -> bool:
    try:
        return all((home / entry.filename).stat().st_size == entry.file_size for entry in archive.infolist())
    except FileNotFoundError:
        return False
