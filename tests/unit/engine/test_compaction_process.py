"""The helper process: it does what the caller would have done, tells when it failed, and never outlives its parent."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from sealane.engine.local.compactor_process import BytesPerSecond, InlineCompactor, ProcessCompactor
from sealane.engine.local.files import DiskFiles
from sealane.errors import StorageError
from sealane.message import Limits, Stamp, from_payloads
from tests.unit.engine.small_store import CARTS, ORDERS, SmallStore

DEADLINE_SECONDS = 30


def batch(*payloads: bytes):
    return from_payloads(payloads, Stamp(1_700_000_000_000_000, bytes(16)), limits=Limits())


@pytest.fixture
def store(tmp_path):
    store = SmallStore(DiskFiles(tmp_path))
    store.segment([(ORDERS, [batch(b"a", b"b")]), (ORDERS, [b"note"])])
    store.segment([(CARTS, [batch(b"c")])], sealed=False)
    yield store
    store.close()


def process_compactor(store: SmallStore, **options) -> ProcessCompactor:
    return ProcessCompactor(store.files.location, store.sealer.keyring, **options)


async def run(store: SmallStore, compactor) -> None:
    plan = store.plan()
    store.metadata.begin_compaction(plan.outputs)
    result = await asyncio.wait_for(compactor.compact(plan), DEADLINE_SECONDS)
    store.apply(plan, result)


@pytest.mark.parametrize("where", ["inline", "process"])
async def test_a_plan_carried_out_anywhere_reads_the_same(store, where):
    before = store.messages(ORDERS), store.messages(CARTS), store.journal(ORDERS)
    inline = InlineCompactor(store.files, store.sealer, store.entropy)
    compactor = inline if where == "inline" else process_compactor(store)
    await run(store, compactor)
    await compactor.close()
    assert (store.messages(ORDERS), store.messages(CARTS), store.journal(ORDERS)) == before
    assert store.segments == []


async def test_a_failure_of_the_helper_is_told_and_a_later_try_succeeds(store):
    before = store.messages(ORDERS)
    compactor = process_compactor(store)
    plan = store.plan()
    missing = [source._replace(file="wal/missing.wal") for source in plan.jobs[0].sources]
    broken = replace(plan, jobs=(replace(plan.jobs[0], sources=tuple(missing)),))
    with pytest.raises(StorageError, match=r"helper failed.*missing\.wal.*tried again later"):
        await compactor.compact(broken)
    await run(store, compactor)
    assert store.messages(ORDERS) == before


async def test_a_helper_that_is_killed_harms_nothing(store):
    before = store.messages(ORDERS)
    compactor = process_compactor(store, bytes_per_second_max=1)
    compaction = asyncio.ensure_future(compactor.compact(store.plan()))
    os.kill(await _started(compactor), signal.SIGKILL)
    with pytest.raises(StorageError, match="helper failed"):
        await asyncio.wait_for(compaction, DEADLINE_SECONDS)
    await run(store, process_compactor(store))
    assert store.messages(ORDERS) == before


async def test_closing_ends_the_helper(store):
    compactor = process_compactor(store, bytes_per_second_max=1)
    compaction = asyncio.ensure_future(compactor.compact(store.plan()))
    pid = await _started(compactor)
    await asyncio.wait_for(compactor.close(), DEADLINE_SECONDS)
    with pytest.raises(StorageError):
        await compaction
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_cancelling_ends_the_helper(store):
    compactor = process_compactor(store, bytes_per_second_max=1)
    compaction = asyncio.ensure_future(compactor.compact(store.plan()))
    pid = await _started(compactor)
    compaction.cancel()
    with pytest.raises(asyncio.CancelledError):
        await compaction
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_the_helper_ends_when_its_input_does(store):
    compactor = process_compactor(store, bytes_per_second_max=1)
    compaction = asyncio.ensure_future(compactor.compact(store.plan()))
    await _started(compactor)
    # What the kernel does when the broker dies.
    assert compactor._process is not None
    assert compactor._process.stdin is not None
    compactor._process.stdin.close()
    with pytest.raises(StorageError, match="exit status 2"):
        await asyncio.wait_for(compaction, DEADLINE_SECONDS)


async def test_keys_are_in_neither_arguments_nor_environment(store):
    compactor = process_compactor(store, bytes_per_second_max=1)
    compaction = asyncio.ensure_future(compactor.compact(store.plan()))
    pid = await _started(compactor)
    master, _ = store.sealer.keyring.transfer()
    for name in ("cmdline", "environ"):
        content = _process_file(pid, name)
        assert content
        assert master not in content
        assert master.hex().encode() not in content
    await compactor.close()
    with pytest.raises(StorageError):
        await compaction


async def test_a_helper_that_cannot_be_started_is_told(store, monkeypatch):
    monkeypatch.setattr("sys.executable", "/nowhere/python")
    with pytest.raises(StorageError, match="cannot be started"):
        await process_compactor(store).compact(store.plan())


def test_the_throttle_spends_its_rate_and_saves_nothing_up():
    now = [100.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        now[0] += seconds

    throttle = BytesPerSecond(1_000, clock=lambda: now[0], sleep=sleep)
    for _ in range(10):
        throttle.spend(100)
    assert sum(slept) == pytest.approx(1.0)
    now[0] += 60
    throttle.spend(500)
    assert slept[-1] == pytest.approx(0.5)


def _process_file(pid: int, name: str) -> bytes:
    return Path(f"/proc/{pid}/{name}").read_bytes()


async def _started(compactor: ProcessCompactor) -> int:
    """The helper's process id, once that process is the helper and no longer a copy of this one."""
    async with asyncio.timeout(DEADLINE_SECONDS):
        while compactor._process is None or not _is_helper(compactor._process.pid):  # noqa: ASYNC110 - it has no event
            await asyncio.sleep(0.01)
    return compactor._process.pid


def _is_helper(pid: int) -> bool:
    try:
        return b"compactor_process" in _process_file(pid, "cmdline")
    except FileNotFoundError:
        return False
