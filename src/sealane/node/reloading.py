"""Reading a partition again: what is in memory is no longer sure to be what is stored, so it is folded anew."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from sealane.delivery.events import Granted, Snapshot
from sealane.delivery.partition import Partition
from sealane.errors import Closed, SealaneError
from sealane.log import get_log
from sealane.node.supervision import Backoff

if TYPE_CHECKING:
    from sealane.node.owner import PartitionOwner

log = get_log("sealane.node")


async def reload(owner: PartitionOwner, pause: float) -> None:
    """Fold again what is stored. Leases are over; acks that had not been journalled yet are kept."""
    before = owner.core
    await asyncio.sleep(pause)  # Commits that failed together hand back what was riding with them first.
    try:
        core = await _read_again(owner, before)
        if core is not None:
            await _resume(owner, before, core)
    except Exception as error:
        # Half of the old state and half of the new: only a restart brings this partition to order.
        owner.supervisor.stop("reload", error, **owner.fields)


async def _read_again(owner: PartitionOwner, before: Partition) -> Partition | None:
    """What the engine holds, once it can be read; None if that will not be."""
    pauses = Backoff()
    while True:
        core = Partition(before.topic, before.limits)
        try:
            await owner.take_over(core)
            return core
        except (SealaneError, OSError) as error:
            if owner.engine.failure is not None or isinstance(error, Closed):
                log.error("a partition takes no more writes", **owner.fields, reason=str(error))
                return None
            log.warning("a partition cannot be read again yet", **owner.fields, reason=str(error))
            await asyncio.sleep(pauses.next_seconds(asyncio.get_running_loop().time()))


async def _resume(owner: PartitionOwner, before: Partition, core: Partition) -> None:
    for name, dispatcher in owner.dispatchers.items():
        # None of them grants from the old state any more; what was granted from it meanwhile is over as well.
        dispatcher.stop()
        for lease in before.subscription(name).leases.by_id.values():
            dispatcher.revoke(lease.id, lease.offsets.copy())
    # A snapshot tells of what was accepted and then failed.
    kept = [event for event in owner.take_unsure() if not isinstance(event, Granted | Snapshot)]
    owner.note_journal(kept)
    for event in kept:
        core.apply(event)
    core.recovered(core.start, core.end)
    for name, member in before.members.items():
        position = core.join(name, member.config, min(member.settled.floor, core.end))
        position.settled.add(member.settled.above)
    for name, dispatcher in list(owner.dispatchers.items()):
        owner.dispatchers[name] = await dispatcher.moved_to(core.subscription(name))
    owner.error = None
    owner.start()
