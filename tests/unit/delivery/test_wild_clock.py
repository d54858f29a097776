"""Clocks that jump both ways, scans that stop half-way, restarts at any moment: what must hold even then."""

from __future__ import annotations

import random

import pytest

from sealane.delivery.config import Retry
from sealane.delivery.events import Acked, DeadLettered, Expired
from sealane.delivery.offsets import pack
from sealane.delivery.partition import Partition
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, SmallQueue, bitmap, listed, rows

ATTEMPTS_MAX = 3


class Chaos:
    """One subscription, driven by a seed."""

    def __init__(self, seed: int, mode: str) -> None:
        self.rng = random.Random(seed)
        self.queue = SmallQueue()
        self.queue.subscribe(mode=mode, retry=Retry(delay_seconds=0.5, attempts_max=ATTEMPTS_MAX))
        self.keys: dict[int, bytes | None] = {}
        self.lease = 0
        self.ended: set[int] = set()

    def run(self, steps: int) -> None:
        commands = [self.publish, self.scan_a_batch, self.grant, self.grant, self.grant, self.answer, self.answer]
        commands += [self.answer, self.jump, self.disconnect, self.bury, self.snapshot, self.restart]
        for _ in range(steps):
            self.rng.choice(commands)()
            self.check()

    def publish(self) -> None:
        now_us, rng = self.queue.now_us, self.rng

        def moment() -> int | None:
            return now_us + rng.randrange(5 * SECOND) if rng.random() < 0.2 else None

        batch = [
            Row(b"m", rng.choice([None, b"a", b"b"]), None, rng.choice([5, 5, 9]), moment(), moment())
            for _ in range(rng.randrange(1, 5))
        ]
        publication = self.queue.publish(rows(*batch) if rng.random() < 0.7 else len(batch))
        plain = publication.batch is not None and publication.batch.records.column("key").null_count == len(batch)
        for offset, row in zip(publication.offsets, batch, strict=True):
            self.keys[offset] = None if plain else row.key

    def scan_a_batch(self) -> None:
        partition, billing = self.queue.partition, self.queue["billing"]
        needed = partition.advance(billing, "billing")
        if needed is not None:
            base, batch = next((base, batch) for base, batch in self.queue.log if base <= needed < base + len(batch))
            self.queue.record(*partition.scan(billing, base, batch, self.queue.now_us))

    def grant(self) -> None:
        consumer = self.rng.choice(["ann", "bob", "http"])
        self.lease += 10
        granted = self.queue["billing"].grant(
            consumer,
            self.rng.randrange(1, 6),
            lease_from=self.lease,
            now_us=self.queue.now_us,
            bound=consumer != "http",
        )
        self.queue.record(*granted)
        for event in granted:
            assert not self.ended.intersection(listed(event.offsets)), "granted after it was settled"

    def answer(self) -> None:
        billing = self.queue["billing"]
        if not billing.leases.by_id:
            return
        lease = self.rng.choice(list(billing.leases.by_id.values()))
        some = bitmap(*self.rng.sample(list(lease.offsets), self.rng.randrange(1, len(lease.offsets) + 1)))
        match self.rng.randrange(4):
            case 0 | 1:
                acked = billing.ack(lease.id, some, self.queue.now_us)
                assert acked is not None
                self.queue.record(acked)
            case 2:
                self.queue.record(*billing.fail(lease.id, some, self.queue.now_us, cause="nack"))
            case 3:
                self.queue.record(*billing.release(lease.id, some))

    def jump(self) -> None:
        self.queue.wait(self.rng.choice([0, 0.001, 0.5, 1, 31, -0.5, -1, -20]))

    def disconnect(self) -> None:
        self.queue.end_connection(self.rng.choice(["ann", "bob"]))

    def bury(self) -> None:
        billing = self.queue["billing"]
        if billing.dying:
            self.queue.happen(DeadLettered("billing", pack(billing.dying[0].offsets), self.queue.now_us))

    def snapshot(self) -> None:
        self.queue.snapshot()

    def restart(self) -> None:
        self.queue.restart()

    # --- what must hold -----------------------------------------------------------------------------------------------

    def check(self) -> None:
        billing = self.queue["billing"]
        self.queue.check()
        for event in self.queue.events:
            if isinstance(event, Acked | Expired | DeadLettered):
                self.ended.update(listed(event.offsets))
        self.queue.events.clear()
        end = self.queue.partition.end
        unsettled = set(billing.settled.without(0, end))
        assert unsettled == set(range(end)) - self.ended, "settled without an event, or not settled by one"
        self._check_fold(self.queue.folded(), unsettled)
        if billing.config.mode == "key-shared":
            holders: dict[bytes, str] = {}
            for lease in billing.leases.by_id.values():
                for offset in lease.offsets:
                    key = self.keys[offset]
                    assert key is None or holders.setdefault(key, lease.consumer) == lease.consumer, "two holders"

    def _check_fold(self, partition: Partition, unsettled: set[int]) -> None:
        billing, recovered = self.queue["billing"], partition.subscription("billing")
        recovered.check(partition.visible)
        assert set(recovered.settled.without(0, partition.end)) == unsettled
        assert recovered.attempts.levels == billing.attempts.levels
        assert recovered.dying.members == billing.dying.members
        assert len(billing.attempts.levels) <= ATTEMPTS_MAX
        unbound = {lease.id: lease.offsets for lease in billing.leases.by_id.values() if not lease.bound}
        assert {lease.id: lease.offsets for lease in recovered.leases.by_id.values()} == unbound

    def drain(self) -> None:
        """With time and consumers that ack, everything ends."""
        for _ in range(200):
            self.queue.wait(40)
            self.bury()
            while self.queue.partition.advance(self.queue["billing"], "billing") is not None:
                self.scan_a_batch()
            for consumer in ("ann", "bob"):
                self.lease += 10
                events = self.queue["billing"].grant(consumer, 100, lease_from=self.lease, now_us=self.queue.now_us)
                self.queue.record(*events)
                for event in events:
                    acked = self.queue["billing"].ack(event.lease, None, self.queue.now_us)
                    assert acked is not None
                    self.queue.record(acked)
            self.check()
            if self.queue["billing"].settled.floor == self.queue.partition.end:
                return
        pytest.fail("something never settles")


@pytest.mark.parametrize("mode", ["queue", "key-shared"])
@pytest.mark.parametrize("seed", range(25))
def test_nothing_is_lost_repeated_or_stuck(seed: int, mode: str) -> None:
    chaos = Chaos(seed, mode)
    chaos.run(120)
    chaos.drain()
