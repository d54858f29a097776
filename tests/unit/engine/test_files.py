"""The real disk behind the seam."""

from __future__ import annotations

import os
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

import pyarrow as pa
import pytest

from sealane.engine.local import DiskFiles
from sealane.engine.local.past_cache import BLOCK_BYTES, PAST_CACHE_BYTES_MIN, PIECE_BYTES_MAX


@pytest.fixture
def files(tmp_path: Path) -> DiskFiles:
    return DiskFiles(tmp_path / "data")


def test_what_is_written_at_a_position_is_read_there(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(5, [b"hello ", memoryview(b"world")])
    assert file.size == 16
    assert file.read_at(5, 5) == b"hello"
    assert file.read_at(11, 100) == b"world"
    assert file.read_at(16, 1) == b""
    file.truncate(7)
    assert file.read_at(0, 100) == bytes(5) + b"he"
    file.sync()
    file.close()
    file.close()


def test_a_buffer_is_filled_as_far_as_the_file_goes(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(0, [b"hello world"])
    buffer = bytearray(8)
    assert file.read_into(2, memoryview(buffer)) == 8
    assert buffer == b"llo worl"
    assert file.read_into(6, memoryview(buffer)) == 5
    assert buffer == b"worldorl"
    assert file.read_into(11, memoryview(buffer)) == 0
    file.close()


def test_more_buffers_than_one_call_takes_are_written_all(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    parts = [b"%06d" % number for number in range(5_000)]
    file.write_at(3, parts)
    assert file.read_at(3, 30_000) == b"".join(parts)
    file.close()


@pytest.mark.parametrize("written", [True, False])
def test_large_writes_into_taken_space_leave_all_around_them_as_it_is(files: DiskFiles, written: bool) -> None:
    """Whole blocks are written, whatever part of the first and the last one is concerned."""
    file = files.open("a", create=True)
    length = 4 * PIECE_BYTES_MAX
    file.zero_fill(length, written=written)
    expected = bytearray(length)
    random = Random(7)
    position = 0
    sizes = [
        PAST_CACHE_BYTES_MIN,
        100,
        BLOCK_BYTES,
        PAST_CACHE_BYTES_MIN + 1,
        2 * PIECE_BYTES_MAX + 3,
        5,
        PIECE_BYTES_MAX - 1,
    ]
    for size in sizes:
        data = random.randbytes(size)
        cuts = sorted(random.randrange(size + 1) for _ in range(3))
        buffers = [data[start:stop] for start, stop in zip([0, *cuts], [*cuts, size], strict=True)]
        file.write_at(position, [memoryview(part) for part in buffers])
        expected[position : position + size] = data
        position += size + random.choice((0, 0, 1, 5_000))
    middle = random.randbytes(PAST_CACHE_BYTES_MIN + 17)
    file.write_at(1_001, [middle])
    expected[1_001 : 1_001 + len(middle)] = middle
    assert file.size == length
    assert file.read_at(0, length) == expected
    file.sync()
    file.close()
    assert Path(files.location, "a").read_bytes() == expected


def test_large_writes_take_any_bytes_such_as_those_of_an_arrow_buffer(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    file.zero_fill(2 * PAST_CACHE_BYTES_MIN)
    data = Random(7).randbytes(PAST_CACHE_BYTES_MIN)
    file.write_at(3, [b"", memoryview(pa.py_buffer(data)), b"end"])
    assert file.read_at(3, len(data) + 3) == data + b"end"
    file.close()


def test_large_writes_past_the_end_lengthen_the_file_by_no_more_than_themselves(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    file.zero_fill(PAST_CACHE_BYTES_MIN)
    data = Random(7).randbytes(PAST_CACHE_BYTES_MIN + 3)
    file.write_at(1, [data])
    assert file.size == 1 + len(data)
    assert file.read_at(0, 2 * len(data)) == b"\0" + data
    file.close()


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="this system has no /dev/shm")
def test_a_file_system_without_a_way_past_its_cache_takes_large_writes_too() -> None:
    with TemporaryDirectory(dir="/dev/shm") as directory:
        file = DiskFiles(directory).open("a", create=True)
        file.zero_fill(1 << 20)
        data = Random(7).randbytes(PAST_CACHE_BYTES_MIN)
        file.write_at(3, [data])
        assert file.read_at(0, len(data) + 4) == bytes(3) + data + b"\0"
        file.close()


def test_a_system_that_hides_descriptors_takes_large_writes_too(
    files: DiskFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_proc(path: str, *arguments: int) -> int:
        if str(path).startswith("/proc/"):
            raise FileNotFoundError(2, "No such file or directory", path)
        return opened(path, *arguments)

    opened = os.open
    file = files.open("a", create=True)
    file.zero_fill(1 << 20)
    monkeypatch.setattr("sealane.engine.local.past_cache.os.open", without_proc)
    data = Random(7).randbytes(PAST_CACHE_BYTES_MIN)
    file.write_at(3, [data])
    assert file.read_at(0, len(data) + 4) == bytes(3) + data + b"\0"
    file.close()


@pytest.mark.parametrize("written", [True, False])
def test_zero_fill_lengthens_and_never_overwrites(files: DiskFiles, written: bool) -> None:
    file = files.open("a", create=True)
    file.write_at(0, [b"data"])
    file.zero_fill(3_000_000, written=written)
    assert file.size == 3_000_000
    assert file.read_at(0, 6) == b"data\0\0"
    assert os.stat(Path(files.location, "a")).st_blocks * 512 >= 3_000_000
    file.zero_fill(10)
    assert file.size == 3_000_000
    file.close()


def test_files_are_listed_renamed_and_removed(files: DiskFiles) -> None:
    assert files.list("sub/deep") == []
    files.make_directory("sub/deep")
    files.make_directory("sub/deep")
    for name in ("b", "a"):
        files.open(f"sub/deep/{name}", create=True).close()
    assert files.list("sub/deep") == ["a", "b"]
    assert files.list("sub") == []
    files.rename("sub/deep/a", "sub/deep/c")
    files.remove("sub/deep/b")
    files.sync_directory("sub/deep")
    assert files.list("sub/deep") == ["c"]
    assert files.exists("sub/deep/c")
    assert not files.exists("sub/deep/a")
    with pytest.raises(FileNotFoundError):
        files.open("sub/deep/a")


def test_a_secret_is_private_and_written_once(files: DiskFiles) -> None:
    assert files.read_secret("key") is None
    files.write_secret("key", b"secret")
    with pytest.raises(FileExistsError):
        files.write_secret("key", b"other")
    assert files.read_secret("key") == b"secret"
    assert files.list(".") == ["key"]
    assert Path(files.location, "key").stat().st_mode & 0o777 == 0o600


def test_a_database_keeps_what_was_committed(files: DiskFiles) -> None:
    connection = files.database("meta.db")
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.execute("CREATE TABLE t (a)")
    connection.execute("INSERT INTO t VALUES (1)")
    connection.commit()
    connection.execute("INSERT INTO t VALUES (2)")
    connection.close()
    again = files.database("meta.db")
    assert again.execute("SELECT a FROM t").fetchall() == [(1,)]
    again.close()


def test_the_lock_is_free_again_after_release(files: DiskFiles) -> None:
    files.acquire()
    files.release()
    files.release()
    other = DiskFiles(files.location)
    other.acquire()
    other.release()


def test_whoever_holds_the_lock_may_make_sure_of_it_again(files: DiskFiles) -> None:
    files.acquire()
    files.acquire()
    files.release()
    other = DiskFiles(files.location)
    other.acquire()
    other.release()


def test_a_file_that_is_let_go_of_is_read_from_disk_and_is_what_it_was(files: DiskFiles) -> None:
    file = files.open("a", create=True)
    file.write_at(0, [b"hello"])
    file.sync()
    files.let_go("a")
    file.write_at(5, [b" world"])
    files.let_go("a")
    assert file.read_at(0, 100) == b"hello world"
    file.close()
    with pytest.raises(FileNotFoundError):
        files.let_go("b")
