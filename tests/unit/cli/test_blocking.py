"""Standard input and output beside the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator

import pytest

from sealane.cli.blocking import READ_BYTES, StandardOutput, in_thread, read_all, read_lines

DEADLINE_SECONDS = 30.0


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reading, writing = os.pipe()
    yield reading, writing
    for descriptor in (reading, writing):
        try:
            os.close(descriptor)
        except OSError:
            pass


async def test_all_pieces_are_written_while_somebody_reads(pipe: tuple[int, int]) -> None:
    out = StandardOutput(pipe[1])

    assert await out.write([b"one\n", b"", b"two\n"]) == 3
    assert os.read(pipe[0], 100) == b"one\ntwo\n"
    assert not out.closed


async def test_pieces_that_a_reader_left_behind_are_told_from_those_it_took(pipe: tuple[int, int]) -> None:
    out = StandardOutput(pipe[1])
    piece = b"x" * 60_000
    # The pipe holds 64 KiB, so the second piece is under way when the reader leaves.
    writing = asyncio.create_task(out.write([piece, piece, piece]))
    async with asyncio.timeout(DEADLINE_SECONDS):
        taken = await in_thread(os.read, pipe[0], 10)
        os.close(pipe[0])
        written = await writing

    assert taken == b"x" * 10
    assert written == 1
    assert out.closed


async def test_a_reader_that_is_gone_takes_nothing(pipe: tuple[int, int]) -> None:
    out = StandardOutput(pipe[1])
    os.close(pipe[0])

    assert await out.write([b"a", b"b"]) == 0
    assert out.closed


async def test_the_loop_goes_on_while_a_pager_waits(pipe: tuple[int, int]) -> None:
    writing = asyncio.create_task(StandardOutput(pipe[1]).write([b"x" * 200_000]))
    for _ in range(10):
        await asyncio.sleep(0)
    assert not writing.done()

    async with asyncio.timeout(DEADLINE_SECONDS):
        assert len(await read_all(pipe[0], 199_999)) >= 200_000
        assert await writing == 1


async def test_an_error_on_the_thread_is_raised_by_the_wait() -> None:
    with pytest.raises(ZeroDivisionError):
        await in_thread(lambda: 1 // 0)


async def lines_of(data: bytes, line_bytes_max: int = 1_000_000) -> list[bytes]:
    reading, writing = os.pipe()

    def write() -> None:
        os.write(writing, data)
        os.close(writing)

    sending = asyncio.create_task(in_thread(write))
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            found = [line async for lines in read_lines(reading, line_bytes_max) for line in lines]
    finally:
        os.close(reading)
        await asyncio.wait([sending])
        sending.exception()
    return found


async def test_lines_come_without_their_ends_and_empty_ones_count() -> None:
    assert await lines_of(b"") == []
    assert await lines_of(b"one") == [b"one"]
    assert await lines_of(b"one\n") == [b"one"]
    assert await lines_of(b"one\n\ntwo\r\n") == [b"one", b"", b"two\r"]


async def test_a_line_may_be_longer_than_one_read() -> None:
    long = b"x" * (READ_BYTES + 10)
    assert await lines_of(long + b"\nshort\n") == [long, b"short"]


async def test_a_line_without_end_does_not_fill_the_memory() -> None:
    (line,) = await lines_of(b"x" * 1_000_000, line_bytes_max=100_000)
    assert 100_000 < len(line) <= 100_000 + READ_BYTES
