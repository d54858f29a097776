"""What a subscription should do, message by message: slow, obvious, and written without looking at bitmaps."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from sealane.delivery.config import SubscriptionConfig
from sealane.message import Row

SETTLED, READY, LEASED, PARKED, DYING = "settled", "ready", "leased", "parked", "dying"


def due(moment_us: int, now_us: int) -> bool:
    """Moments are rounded up to the millisecond."""
    return -(-moment_us // 1_000) <= now_us // 1_000


@dataclass
class Message:
    offset: int
    row: Row
    place: str = READY
    due_us: int = 0
    lease: int | None = None
    failures: int = 0
    stale: bool = False

    def settle(self) -> None:
        self.place, self.lease, self.failures, self.stale = SETTLED, None, 0, False


@dataclass
class HeldLease:
    id: int
    consumer: str
    deadline_us: int
    bound: bool


@dataclass
class Model:
    """One subscription. Time never goes back here, and every message that is visible has been scanned."""

    name: str
    config: SubscriptionConfig
    accepts: Callable[[Row], bool] = lambda row: True
    messages: dict[int, Message] = field(default_factory=dict)
    leases: dict[int, HeldLease] = field(default_factory=dict)

    def at(self, place: str) -> set[int]:
        return {message.offset for message in self.messages.values() if message.place == place}

    def failures(self) -> dict[int, int]:
        return {message.offset: message.failures for message in self.messages.values() if message.failures}

    def held(self, lease: int, offsets: Iterable[int] | None = None) -> list[Message]:
        wanted = None if offsets is None else set(offsets)
        return [
            message
            for message in self.messages.values()
            if message.place == LEASED and message.lease == lease and (wanted is None or message.offset in wanted)
        ]

    # --- commands -----------------------------------------------------------------------------------------------------

    def publish(self, offset: int, row: Row, only: str | None, now_us: int) -> None:
        message = self.messages[offset] = Message(offset, row)
        if only not in (None, self.name) or not self.accepts(row):
            message.settle()
        self._look(message, now_us)

    def _look(self, message: Message, now_us: int) -> None:
        """What a scan sees: expired, or delayed."""
        row = message.row
        if message.place != SETTLED and row.expires_us is not None and due(row.expires_us, now_us):
            if message.place == LEASED:
                message.stale = True
            else:
                message.settle()
        if message.place == READY and row.deliver_at_us is not None and not due(row.deliver_at_us, now_us):
            message.place, message.due_us = PARKED, row.deliver_at_us

    def grant_in_order(self, count: int) -> list[int]:
        """What a queue grants: the highest priority first, ties by offset."""
        ready = [message for message in self.messages.values() if message.place == READY]
        ready.sort(key=lambda message: (-message.row.priority, message.offset))
        return [message.offset for message in ready[:count]]

    def grantable_by_key(self, consumer: str) -> set[int]:
        """What a key-shared subscription may grant to this consumer: no key out of order, or to two consumers."""
        blocked: set[bytes] = set()
        grantable = set()
        for offset in sorted(self.messages):
            message = self.messages[offset]
            key = message.row.key
            if message.place == SETTLED:
                continue
            if key is None:
                if message.place == READY:
                    grantable.add(offset)
                continue
            if message.place == READY and key not in blocked:
                grantable.add(offset)
            elif message.lease is None or self.leases[message.lease].consumer != consumer:
                blocked.add(key)
        others = {
            message.row.key
            for message in self.messages.values()
            if message.lease is not None and self.leases[message.lease].consumer != consumer
        }
        return {offset for offset in grantable if self.messages[offset].row.key not in others - {None}}

    def granted(self, lease: HeldLease, offsets: Iterable[int]) -> None:
        self.leases[lease.id] = lease
        for offset in offsets:
            message = self.messages[offset]
            assert message.place == READY, f"{offset} was granted and is {message.place}"
            message.place, message.lease = LEASED, lease.id

    def ack(self, lease: int, offsets: Iterable[int] | None) -> None:
        for message in self.held(lease, offsets):
            message.settle()

    def fail(
        self, lease: int, offsets: Iterable[int] | None, now_us: int, delay_us: int | None, *, keys_known: bool = True
    ) -> None:
        failing = self.held(lease, offsets)
        later = self._later(failing, keys_known=keys_known)
        for message in failing:
            if message.stale:
                message.settle()
                continue
            message.lease = None
            message.failures += 1
            if message.failures >= self.config.retry.attempts_max:
                message.place = DYING
            else:
                pause_us = self.config.retry.delay_us(message.failures) if delay_us is None else delay_us
                message.place, message.due_us = PARKED, now_us + pause_us
        for message in later:
            self._give_back(message)

    def _later(self, failing: list[Message], *, keys_known: bool) -> list[Message]:
        """In key-shared mode: what is granted of the same keys, beyond what fails."""
        if self.config.mode != "key-shared" or not failing:
            return []
        first: dict[bytes | None, int] = {}
        for message in failing:
            first[message.row.key] = min(message.offset, first.get(message.row.key, message.offset))
        first_of_all = min(first.values())
        return [
            message
            for message in self.messages.values()
            if message.place == LEASED
            and message not in failing
            and (
                message.offset > first.get(message.row.key, message.offset)
                if keys_known and message.row.key is not None
                else not keys_known and message.offset > first_of_all
            )
        ]

    def _give_back(self, message: Message) -> None:
        message.lease = None
        if message.stale:
            # Settled by the next tick, at whatever time that is.
            message.place, message.due_us = PARKED, 0
        else:
            message.place = READY

    def release(self, lease: int, offsets: Iterable[int] | None) -> None:
        released = self.held(lease, offsets)
        for message in [*released, *self._later(released, keys_known=True)]:
            self._give_back(message)

    def extend(self, lease: int, deadline_us: int) -> None:
        if self.held(lease):
            self.leases[lease].deadline_us = deadline_us

    def end_connection(self, consumer: str, now_us: int) -> None:
        for lease in list(self.leases.values()):
            if lease.consumer == consumer and lease.bound:
                self.fail(lease.id, None, now_us, 0)

    def tick(self, now_us: int, *, keys_known: bool = True) -> None:
        ended = [lease for lease in self.leases.values() if lease.deadline_us <= now_us and self.held(lease.id)]
        for lease in sorted(ended, key=lambda lease: (lease.deadline_us, lease.id)):
            self.fail(lease.id, None, now_us, None, keys_known=keys_known)
        for message in self.messages.values():
            expires_us = message.row.expires_us
            if message.place != SETTLED and expires_us is not None and due(expires_us, now_us):
                if message.place == LEASED:
                    message.stale = True
                else:
                    message.settle()
            if message.place == PARKED and due(message.due_us, now_us):
                message.place = READY

    def bury(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self.messages[offset].settle()

    def lose(self, offsets: Iterable[int]) -> None:
        for offset in offsets:
            self.messages[offset].settle()

    def seek(self, offset: int, lost: set[int], passed: set[int], now_us: int) -> None:
        for message in self.messages.values():
            message.settle()
            if message.offset >= offset and message.offset not in lost | passed:
                message.place = READY
                self._look(message, now_us)

    def restart(self, now_us: int) -> None:
        """Bound leases are over; the whole log is looked at again."""
        for message in self.messages.values():
            if message.lease is not None and not self.leases[message.lease].bound:
                message.stale = False
            elif message.lease is not None:
                message.place, message.lease, message.stale = READY, None, False
            self._look(message, now_us)

    def restarted(self, now_us: int) -> Model:
        model = copy.deepcopy(self)
        model.restart(now_us)
        return model
