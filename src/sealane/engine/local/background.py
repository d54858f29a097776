"""What an engine does in the background, put together: compaction, sealing anew, chores, and the care of its keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

from sealane.engine.contract import PartitionKey
from sealane.engine.local.compacting import Compacting
from sealane.engine.local.compactor_process import Compactor, ProcessCompactor
from sealane.engine.local.files import DiskFiles, Files
from sealane.engine.local.housekeeping import Housekeeping
from sealane.engine.local.local_keys import LocalKeys
from sealane.engine.local.resealing import Resealing
from sealane.engine.local.runner import Runner
from sealane.engine.local.start import Start
from sealane.engine.watch import EngineWatch
from sealane.security.at_rest.sealing import Sealer

MakeCompactor = Callable[[Files, Sealer], Compactor]
"""What makes a compactor once the keys are there."""


class Joints(NamedTuple):
    """Where the background and the engine take hold of each other."""

    watch: EngineWatch
    generation: Callable[[], int]
    """A number that was never given before."""
    stop: Callable[[str, Exception], None]
    settled: Callable[[], Awaitable[None]]
    end_segment: Callable[[], Awaitable[None]]
    drop: Callable[[PartitionKey], Awaitable[None]]
    is_backing_up: Callable[[], bool]


def arrange(
    start: Start, compactor: Compactor | MakeCompactor | None, runner: Runner, joints: Joints
) -> tuple[Housekeeping, LocalKeys]:
    """Nothing of it runs before `Housekeeping.start`."""
    compacting = Compacting(
        start.files,
        space=start.space,
        sources=start.sources,
        metadata=start.metadata,
        partitions=start.partitions,
        dropped=start.dropped,
        closed=start.recovered.closed,
        compacted=start.compacted,
        runner=runner,
        compactor=_compactor(start, compactor),
        number=start.number,
        generation=joints.generation,
        stop=joints.stop,
    )
    resealing = Resealing(
        start.files,
        metadata=start.metadata,
        sealer=start.sealer,
        wal=start.wal,
        sources=start.sources,
        compacting=compacting,
        runner=runner,
        settled=joints.settled,
        end_segment=joints.end_segment,
    )
    housekeeping = Housekeeping(
        start.files,
        start.settings,
        space=start.space,
        wal=start.wal,
        sources=start.sources,
        compacting=compacting,
        resealing=resealing,
        runner=runner,
        watch=joints.watch,
    )
    keys = LocalKeys(
        start.files,
        keyring=start.sealer.keyring,
        metadata=start.metadata,
        partitions=start.partitions,
        resealing=resealing,
        runner=runner,
        drop=joints.drop,
        wake=housekeeping.wake,
        is_backing_up=joints.is_backing_up,
    )
    return housekeeping, keys


def _compactor(start: Start, given: Compactor | MakeCompactor | None) -> Compactor | None:
    if callable(given):
        return given(start.files, start.sealer)
    if given is None and isinstance(start.files, DiskFiles):
        rate = start.settings.compaction_bytes_per_second_max
        return ProcessCompactor(start.files.location, start.sealer.keyring, bytes_per_second_max=rate)
    return given
