"""A gate between the pipeline and the source of a query that stays: the source asks how far it may go, and waits.

A query that is started for each cycle starts Python and plans anew each time; one that runs by a clock is not to be
told when to begin, nor how far to go. Here Spark asks the source what is next as soon as it has noted the last
micro-batch as done, and gets no answer before the pipeline has given the word. So the question is an answer, too:
everything up to the last word is in.

The source is a process that Spark starts, on the machine of the driver. It finds the gate by a path that nobody but
this user can get to. A pipeline that is killed leaves the directory of its gates behind, and the next one that makes a
gate on the machine removes it.
"""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import socket
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

if TYPE_CHECKING:
    from sealane.spark.source.planning.offsets import OffsetJson

_QUESTION = b"?"
_PATH_BYTES_MAX = 100
"""Of a socket's path: systems have 104 to 108."""
_PREFIX = "sealane-gate-"
_SOCKET = "gate"
_SHORT = "/tmp"  # noqa: S108 - a directory of one's own is made in it


class Word(NamedTuple):
    """What the pipeline says."""

    until: OffsetJson | None
    """How far to go; None: to the end of what there is now."""


class Gate:
    """The pipeline's side of it."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix=_PREFIX)
        if len(self._path().encode()) > _PATH_BYTES_MAX:
            self._home.cleanup()
            self._home = tempfile.TemporaryDirectory(prefix=_PREFIX, dir=_SHORT)
        _remove_left(Path(self._home.name).parent)
        self.path = self._path()
        self._lock = _locked(self._home.name)
        """Before the socket is there, and for as long as this process lives, however that ends."""
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind(self.path)
        self._listening.listen()
        self._source: socket.socket | None = None
        self._is_asked = False

    def _path(self) -> str:
        return f"{self._home.name}/{_SOCKET}"

    def is_asked(self, wait_seconds: float) -> bool:
        """Whether the source waits for the word. If it does not yet, that is waited for, for so long at most."""
        if self._is_asked:
            return True
        ready, _, _ = select.select([self._source or self._listening], [], [], wait_seconds)
        if not ready:
            return False
        if self._source is None:
            self._source, _ = self._listening.accept()
        elif self._source.recv(len(_QUESTION)):
            self._is_asked = True
        else:  # It has ended, and Spark will tell why.
            self._source.close()
            self._source = None
        return self._is_asked

    def let_through(self, until: OffsetJson | None = None) -> None:
        """Give the word to the source, which has asked."""
        assert self._source is not None
        assert self._is_asked
        self._is_asked = False
        self._source.sendall(msgspec.json.encode(until) + b"\n")

    def close(self) -> None:
        """A source that waits is not kept."""
        for each in (self._source, self._listening):
            if each is not None:
                each.close()
        self._home.cleanup()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _remove_left(directory: Path) -> None:
    """Take away what killed processes have left: directories with a socket, whose lock nobody has any more."""
    for path in directory.glob(f"{_PREFIX}*/{_SOCKET}"):
        try:
            lock = _locked(path.parent)
        except OSError:  # It is another user's, or was removed meanwhile.
            continue
        if lock is not None:
            shutil.rmtree(path.parent, ignore_errors=True)
            os.close(lock)


def _locked(directory: Path | str) -> int | None:
    """What holds a directory until it is closed; None if somebody else does."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


class AtTheGate:
    """The source's side of it."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._pipeline: socket.socket | None = None

    def wait(self) -> Word | None:
        """The next word, once it is given; None if nobody will give one any more."""
        try:
            said = self._asked()
        except OSError:
            said = b""
        if not said:
            self.leave()
            return None
        return Word(msgspec.json.decode(said, type=dict[str, dict[str, int]] | None))

    def leave(self) -> None:
        """Whoever asks again comes in anew."""
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.close()

    def _asked(self) -> bytes:
        if self._pipeline is None:
            self._pipeline = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            self._pipeline.connect(self._path)
        self._pipeline.sendall(_QUESTION)
        with self._pipeline.makefile("rb") as answer:  # One line, and nothing after it until the next question.
            return answer.readline()
