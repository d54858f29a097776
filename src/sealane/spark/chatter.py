"""What Spark says on standard error whatever happens, and which means nothing.

A streaming source has a Python process of its own. When its query ends it hears so from a socket that is closed, and
may be quick enough to tell of that, to the same socket, before it is ended: two or three tracebacks, on standard error.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

START = b"WARNING: Using incubator modules"
"""Java says it before any setting of its logs is read."""
SOURCE_RUNNER = b"/pyspark/sql/streaming/python_streaming_source_runner.py"
_TRACEBACK = b"Traceback (most recent call last):"
_CHAINED = (_TRACEBACK, b"During handling of the above exception")
_ENDS = (b"EOFError", b"BrokenPipeError", b"ConnectionResetError")
"""How the tracebacks of such a process end: what it reads from is gone, and so is what it writes to."""


def without_chatter(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The lines, less those. A traceback that may be one of them is held until that is known, and no longer."""
    held: list[bytes] = []
    for line in lines:
        if held and _goes_on(line):
            held.append(line)
        elif held and line.startswith(_ENDS) and any(SOURCE_RUNNER in each for each in held):
            held = [held[0]]  # Another may be chained to it, which has the runner in it too.
        else:
            yield from _kept(held)
            held = [line] if line.startswith(_TRACEBACK) else []
            if not held and not line.startswith(START):
                yield line
    yield from _kept(held)


def _goes_on(line: bytes) -> bool:
    return not line.strip() or line.startswith((b" ", *_CHAINED))


def _kept(held: list[bytes]) -> list[bytes]:
    """What was held for nothing; of a good-bye nothing but its first line, and blank ones, is left."""
    return held if any(line.startswith(b" ") for line in held) else []
