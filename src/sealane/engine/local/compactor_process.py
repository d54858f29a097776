"""Who carries a compaction out: a helper process, so that it takes no time from the broker, or the caller itself.

The helper gets its work, and the keys it needs, over its standard input, never by arguments or environment, which other
users of the machine could read. It ends when that input closes, so it never outlives the broker.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import Protocol

import msgspec

from sealane.engine.local.compaction import CompactionResult, compact
from sealane.engine.local.compaction_plan import Plan
from sealane.engine.local.files import DiskFiles, Files
from sealane.errors import SealaneError, StorageError
from sealane.security.at_rest.keys import Keyring, WrappedKey
from sealane.security.at_rest.sealing import Sealer

NICENESS = 19
"""The helper yields the processor to everything of normal priority, from its first line on: where a node keeps all
cores busy, it gets what they leave, a hundredth if they leave nothing."""

_PAUSE_SECONDS_MIN = 0.05
"""Shorter waits are saved up: the throttle sleeps now and then, not after every batch."""
_DIAGNOSTIC_BYTES_MAX = 4096
_LENGTH_BYTES = 8
_PROGRAM = f"import os, sys; os.nice({NICENESS}); from {__name__} import main; sys.exit(main())"


class Compactor(Protocol):
    """Carries plans out, one at a time."""

    async def compact(self, plan: Plan) -> CompactionResult:
        """As `compaction.compact`. `StorageError` when it failed; nothing is lost, and a later plan may succeed."""
        ...

    async def close(self) -> None:
        """Abandon what is under way."""
        ...


class InlineCompactor:
    """Compacts where it is called: deterministic, for simulations and tests."""

    def __init__(self, files: Files, sealer: Sealer, entropy: Callable[[int], bytes]) -> None:
        self._files = files
        self._sealer = sealer
        self._entropy = entropy

    async def compact(self, plan: Plan) -> CompactionResult:
        return compact(self._files, plan, self._sealer, self._entropy)

    async def close(self) -> None:
        """Nothing is ever under way between calls."""


class ProcessCompactor:
    """Compacts in a helper process that is niced, throttled, and started anew for each plan."""

    def __init__(self, location: str, keyring: Keyring, *, bytes_per_second_max: int | None = None):
        self._location = location
        self._keyring = keyring
        self._bytes_per_second_max = bytes_per_second_max
        self._process: Process | None = None

    async def compact(self, plan: Plan) -> CompactionResult:
        if self._process is not None:
            raise RuntimeError("a compaction is under way")
        master, keys = self._keyring.transfer()
        order = msgspec.msgpack.encode(_Order(self._location, master, keys, plan, self._bytes_per_second_max))
        try:
            process = await asyncio.create_subprocess_exec(
                sys.executable,
                *("-c", _PROGRAM),
                stdin=PIPE,
                stdout=PIPE,
                stderr=PIPE,
                env=_environment(),
                start_new_session=True,  # A Ctrl-C at the terminal is for the broker, which ends the helper itself.
            )
        except OSError as error:
            raise StorageError(f"the compaction helper cannot be started: {error}; it is tried again later") from error
        self._process = process
        try:
            answer, diagnostics = await _converse(process, order)
        finally:
            self._process = None
            await _end(process)
        # The answer is the helper's last act, after everything it wrote was synced: if it is whole, the work is done.
        # The exit status says less; where another part of the program reaps children it is not even known.
        try:
            return msgspec.msgpack.decode(answer, type=CompactionResult)
        except msgspec.MsgspecError:
            problem = diagnostics[-_DIAGNOSTIC_BYTES_MAX:].decode(errors="replace").strip()
            raise StorageError(
                f"the compaction helper failed (exit status {process.returncode}): "
                f"{problem or 'it said nothing'}; it is tried again later"
            ) from None

    async def close(self) -> None:
        if self._process is not None:
            await _end(self._process)


class BytesPerSecond:
    """A throttle: spends at most so many bytes a second on average."""

    def __init__(
        self,
        bytes_per_second_max: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._seconds_per_byte = 1 / bytes_per_second_max
        self._clock = clock
        self._sleep = sleep
        self._due = clock()

    def spend(self, count: int) -> None:
        now = self._clock()
        # Time that passed unused is not saved up: after a pause there is no burst.
        self._due = max(self._due, now) + count * self._seconds_per_byte
        if self._due - now >= _PAUSE_SECONDS_MIN:
            self._sleep(self._due - now)


class _Order(msgspec.Struct):
    """What the helper is told."""

    location: str
    master: bytes
    keys: list[WrappedKey]
    plan: Plan
    bytes_per_second_max: int | None


class _KeysAsGiven:
    """The helper's key store: it opens and seals with the keys it was handed, and makes none."""

    def key_check(self) -> bytes | None:
        return None

    def save_key_check(self, check: bytes) -> None:
        raise NotImplementedError

    def wrapped_keys(self) -> list[WrappedKey]:
        raise NotImplementedError

    def save_wrapped_key(self, key: WrappedKey) -> None:
        raise NotImplementedError

    def destroy_wrapped_keys(self, domain: str) -> None:
        raise NotImplementedError

    def retire_wrapped_keys(self, key_ids: Collection[int]) -> None:
        raise NotImplementedError

    def rewrap_keys(self, keys: Iterable[WrappedKey], check: bytes) -> None:
        raise NotImplementedError


def _environment() -> dict[str, str]:
    """This process's environment, with this very package first on the path, and no threads that nothing is asked of."""
    package_root = str(Path(__file__).parents[3])
    inherited = os.environ.get("PYTHONPATH")
    path = os.pathsep.join([package_root, inherited] if inherited else [package_root])
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ, "PYTHONPATH": path}


async def _converse(process: Process, order: bytes) -> tuple[bytes, bytes]:
    """Hand the order over and gather the answer. The input stays open: its end would mean that we are gone."""
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        process.stdin.write(len(order).to_bytes(_LENGTH_BYTES, "little") + order)
        await process.stdin.drain()
    except (BrokenPipeError, ConnectionResetError):
        # It ended before it had read everything; its exit status and its last words tell why.
        pass
    answer, diagnostics = await asyncio.gather(process.stdout.read(), process.stderr.read())
    return answer, diagnostics


async def _end(process: Process) -> None:
    if process.returncode is None:
        if process.stdin is not None:
            process.stdin.close()
        try:
            process.kill()
        except ProcessLookupError:
            pass
    await process.wait()


def main() -> int:
    """The helper's whole life: read the order, carry it out, answer."""
    answers = os.fdopen(os.dup(1), "wb")
    # Whatever prints by mistake must not garble the answer.
    os.dup2(2, 1)
    orders = sys.stdin.buffer
    order = msgspec.msgpack.decode(orders.read(int.from_bytes(orders.read(_LENGTH_BYTES), "little")), type=_Order)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    sealer = Sealer(Keyring(order.master, _KeysAsGiven(), os.urandom, keys=order.keys), os.urandom)
    rate = order.bytes_per_second_max
    throttle = BytesPerSecond(rate) if rate is not None else None
    try:
        result = compact(DiskFiles(order.location, create=False), order.plan, sealer, os.urandom, throttle)
    except (SealaneError, OSError) as error:
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 1
    answers.write(msgspec.msgpack.encode(result))
    answers.flush()
    return 0


def _end_with_parent() -> None:
    # A raw read: the buffered reader's lock must not be held when the interpreter shuts down.
    while os.read(0, 1):
        pass
    os._exit(2)
