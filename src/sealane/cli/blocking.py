"""Standard input and output beside the event loop: a pager that waits must not stop heartbeats and leases."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from itertools import accumulate
from typing import Any, TypeVar

T = TypeVar("T")

READ_BYTES = 1 << 18
"""What is read at once; more would only add memory."""


async def in_thread(call: Callable[..., T], *arguments: Any) -> T:
    """The result of a call that may block for long, on a thread that the end of the command does not wait for."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(result: T | None, error: BaseException | None) -> None:
        if done.done():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)  # type: ignore[arg-type]  # what `call` returned

    def work() -> None:
        result, problem = None, None
        try:
            result = call(*arguments)
        except BaseException as error:
            problem = error
        try:
            loop.call_soon_threadsafe(tell, result, problem)
        except RuntimeError:
            pass  # The command has ended in the meantime.

    threading.Thread(target=work, daemon=True, name="sealane-blocking").start()
    return await done


class StandardOutput:
    """Writes whole pieces, and knows how many of them went through."""

    def __init__(self, descriptor: int = 1) -> None:
        self._descriptor = descriptor
        self._stopped = False
        self.closed = False
        """Whoever read the output has had enough."""

    async def write(self, pieces: Sequence[bytes]) -> int:
        """Returns how many pieces were written completely: all of them, unless the reader has gone."""
        ends = list(accumulate(map(len, pieces)))
        written = await in_thread(self._write, b"".join(pieces))
        return sum(1 for end in ends if end <= written)

    def stop(self) -> None:
        """Write no more than what is being written."""
        self._stopped = True

    def _write(self, data: bytes) -> int:
        left = memoryview(data)
        while left and not self._stopped:
            try:
                left = left[os.write(self._descriptor, left) :]
            except BrokenPipeError:
                self.closed = True
                break
        return len(data) - len(left)


async def read_all(descriptor: int, bytes_max: int) -> bytes:
    """Everything up to the end, or somewhat more than `bytes_max` if there is more."""
    parts: list[bytes] = []
    count = 0
    while count <= bytes_max:
        part = await in_thread(os.read, descriptor, READ_BYTES)
        if not part:
            break
        parts.append(part)
        count += len(part)
    return b"".join(parts)


async def read_lines(descriptor: int, line_bytes_max: int) -> AsyncIterator[list[bytes]]:
    """Lines without their ends, as they come, in lists of what came together; memory stays constant.

    A line that grows beyond `line_bytes_max` is given out as it is then, and ends the reading.
    """
    rest = b""
    while True:
        part = await in_thread(os.read, descriptor, READ_BYTES)
        if not part:
            break
        *lines, rest = (rest + part).split(b"\n")
        if lines:
            yield lines
        if len(rest) > line_bytes_max:
            break
    if rest:
        yield [rest]
