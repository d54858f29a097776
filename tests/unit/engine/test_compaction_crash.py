"""A compaction that ends anywhere, by a crash, a power loss or a failing disk, leaves everything readable."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest

from sealane.engine.local.compaction import compact, forget_removed, remove_garbage
from sealane.engine.local.compaction_plan import Plan
from sealane.engine.local.record import JOURNAL
from sealane.engine.local.trims import Trim
from sealane.errors import StorageError
from sealane.message import Limits, Stamp, from_payloads
from tests.simulation.disk import DiskFault, DiskFaultKind, SimDisk
from tests.simulation.ends import Crashed
from tests.unit.engine.small_store import CARTS, ORDERS, SmallStore


def batch(*payloads: bytes):
    return from_payloads(payloads, Stamp(1_700_000_000_000_000, bytes(16)), limits=Limits())


def written() -> SimDisk:
    """A disk with an older compacted file, two closed segments, and a trim."""
    disk = SimDisk(random.Random(1))
    store = SmallStore(disk.mount())
    store.segment([(ORDERS, [batch(b"a", b"b")]), (ORDERS, [b"0"])], [(CARTS, [batch(b"c")])])
    store.compact()
    store.segment([(ORDERS, [batch(b"d", b"e")]), (ORDERS, [b"1", b"2"])])
    store.segment([(CARTS, [batch(b"f")])], sealed=False)
    store.metadata.save_trim(ORDERS, Trim(1, 1))
    store.close()
    return disk


def readable(store: SmallStore) -> list[object]:
    return [
        (
            partition,
            store.messages(partition),
            store.journal(partition),
            store.end(partition),
            store.end(partition, JOURNAL),
        )
        for partition in (ORDERS, CARTS)
    ]


def operations_of_a_compaction() -> int:
    disk = written()
    store = SmallStore(disk.mount())
    before = disk.operations
    store.compact()
    return disk.operations - before


OPERATIONS = operations_of_a_compaction()


def test_a_compaction_is_many_operations():
    assert OPERATIONS > 15


@pytest.mark.parametrize("kind", ["crash_before", "crash_after", "torn_write"])
@pytest.mark.parametrize("operation", range(1, OPERATIONS + 1))
def test_a_crash_at_any_operation_leaves_the_old_truth_or_the_new(kind: DiskFaultKind, operation: int):
    disk = written()
    store = SmallStore(disk.mount())
    before = readable(store)
    disk.arm(DiskFault(kind, disk.operations + operation))
    with suppress(Crashed):
        store.compact()
    disk.disarm()
    disk.lose_power()

    store = SmallStore(disk.mount())
    assert readable(store) == before
    store.compact()
    assert readable(store) == before
    assert store.metadata.garbage() == []
    # Nothing is left that metadata does not know: no drafts, no orphans, no replaced segments.
    files = {name for name in disk.directory.names if name.startswith(("compacted/", "wal/"))}
    assert files == {file.name for file in store.metadata.manifest()}
    disk.close()


@pytest.mark.parametrize("kind", ["write_error", "sync_error"])
@pytest.mark.parametrize("operation", range(1, OPERATIONS + 1))
def test_a_disk_that_fails_under_a_compaction_costs_nothing(kind: DiskFaultKind, operation: int):
    disk = written()
    store = SmallStore(disk.mount())
    before = readable(store)
    disk.arm(DiskFault(kind, disk.operations + operation))
    with suppress(OSError, StorageError):
        store.compact()
    disk.disarm()
    store.close()
    store = SmallStore(disk.mount())
    assert readable(store) == before
    store.compact()
    assert readable(store) == before
    disk.close()


def test_a_full_disk_ends_a_compaction_and_the_next_one_succeeds():
    disk = written()
    store = SmallStore(disk.mount())
    before = readable(store)
    disk.capacity_bytes = disk.used_bytes + 100
    with pytest.raises(OSError, match="No space"):
        store.compact()
    assert readable(store) == before
    disk.capacity_bytes = None
    store.compact()
    assert readable(store) == before
    disk.close()


def garbage_of(plan: Plan) -> list[str]:
    """What is garbage once the plan is in force: what it replaces, and the drafts it announced."""
    return sorted([*plan.removed, *plan.segments, *(job.draft for job in plan.jobs)])


def test_a_removal_by_someone_else_is_made_durable_before_it_is_forgotten():
    disk = written()
    store = SmallStore(disk.mount())
    before = readable(store)
    plan = store.plan()
    store.metadata.begin_compaction(plan.outputs)
    result = compact(store.files, plan, store.sealer, store.entropy)
    store.metadata.apply_compaction(result.added, plan.removed, plan.segments)
    for name in (*plan.removed, *plan.segments):
        store.files.remove(name)
    assert sorted(forget_removed(store.files, store.metadata)) == garbage_of(plan)
    disk.lose_power()
    assert readable(SmallStore(disk.mount())) == before
    disk.close()


def test_a_file_that_someone_still_reads_stays_for_the_next_time():
    disk = written()
    store = SmallStore(disk.mount())
    kept = store.segments[0]
    store.metadata.apply_compaction((), (), store.segments)
    assert remove_garbage(store.files, store.metadata, keep={kept}) == store.segments[1:]
    assert store.files.exists(kept)
    assert remove_garbage(store.files, store.metadata) == [kept]
    assert not store.files.exists(kept)
    disk.close()
