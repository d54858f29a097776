"""What the engine cannot do."""

from __future__ import annotations

from sealane.errors.base import SealaneError


class StorageError(SealaneError):
    """The engine cannot do what was asked."""


class StorageFull(StorageError):
    """No room: the disk, or the configured share of it, is used up. Reads and acks go on; publishes resume later."""

    def __init__(self, used_bytes: int, limit_bytes: int, what: str = "storage.disk_bytes_max") -> None:
        self.used_bytes = used_bytes
        self.limit_bytes = limit_bytes
        super().__init__(
            f"publish refused: {used_bytes:,} bytes in use of {limit_bytes:,} ({what}); "
            "publishing resumes by itself when retention or an operator frees space"
        )


class StorageFailed(StorageError):
    """The engine has stopped taking writes after an I/O error (fail-stop); restart once the disk is sound."""


class FormatTooNew(StorageError):
    """The data was written by a newer Sealane than this one."""

    def __init__(self, what: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(f"{what} has format {found}, this Sealane reads up to {supported}: upgrade Sealane")


class DataDirectoryInUse(StorageError):
    """Another process holds the data directory."""

    def __init__(self, directory: str, pid: int | None) -> None:
        self.directory = directory
        self.pid = pid
        holder = f"process {pid}" if pid else "another process"
        super().__init__(f"data directory {directory!r} is in use by {holder}; stop it, or choose another directory")


class CorruptData(StorageError):
    """Stored bytes fail their check; `detail` names file, place and offsets."""


class KeyUnavailable(StorageError):
    """The key that sealed this data is missing or is not the right one."""


class OffsetMismatch(StorageError):
    """A commit expected another end of the log than there is: someone else has appended."""

    def __init__(self, partition: str, expected: int, actual: int) -> None:
        self.expected = expected
        self.actual = actual
        super().__init__(f"{partition}: commit expected offset {expected}, the log ends at {actual}")


class Fenced(StorageError):
    """The committer's epoch is over: another owner has opened the partition."""

    def __init__(self, partition: str, epoch: int, current: int) -> None:
        self.epoch = epoch
        self.current = current
        super().__init__(f"{partition}: epoch {epoch} is over, {current} owns it now")


class VersionMismatch(StorageError):
    """A compare-and-set lost: the key's version is not the expected one."""

    def __init__(self, key: str, expected: int, actual: int) -> None:
        self.key = key
        self.expected = expected
        self.actual = actual
        super().__init__(f"key {key!r}: expected version {expected}, it is {actual}")
