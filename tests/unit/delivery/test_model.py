"""Random commands to the core and to a model that keeps a line a message: after each of them, both must agree."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from sealane.delivery.config import Retry
from sealane.delivery.partition import Partition
from sealane.delivery.subscription import Subscription
from sealane.message import Row
from tests.unit.delivery.reference_model import DYING, LEASED, PARKED, READY, SETTLED, HeldLease, Model
from tests.unit.delivery.small_queue import SECOND, SmallQueue, bitmap, listed, rows

CONSUMERS = st.sampled_from(["ann", "bob", "cyd"])
NAMES = st.sampled_from(["plain", "keyed", "picky"])
KEYS = st.sampled_from([None, b"a", b"b", b"c"])
PAUSES = st.sampled_from([0, 1, 999, 1_000, 1_500, SECOND, 5 * SECOND, 40 * SECOND])
RETRIES = st.sampled_from(
    [Retry(attempts_max=3), Retry(kind="fixed", delay_seconds=0.0005, attempts_max=2), Retry(attempts_max=1)]
)


@st.composite
def messages(draw: st.DrawFn, now_us: int) -> Row:
    return Row(
        b"m",
        key=draw(KEYS),
        priority=draw(st.sampled_from([5, 5, 1, 9])),
        expires_us=draw(st.none() | PAUSES.map(lambda pause_us: now_us + pause_us)),
        deliver_at_us=draw(st.none() | PAUSES.map(lambda pause_us: now_us + pause_us)),
    )


class DeliveryMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.queue = SmallQueue()
        self.models: dict[str, Model] = {}
        self.lost: set[int] = set()
        self.passed: dict[str, set[int]] = {}

    @initialize(retry=RETRIES)
    def begin(self, retry: Retry) -> None:
        for name, mode, wanted in (
            ("plain", "queue", None),
            ("keyed", "key-shared", None),
            ("picky", "queue", "key = 'a'"),
        ):
            subscription = self.queue.subscribe(name, mode, retry=retry, filter=wanted)
            self.models[name] = Model(name, subscription.config)
            self.passed[name] = set()
        self.models["picky"].accepts = lambda row: row.key == b"a"

    # --- commands -----------------------------------------------------------------------------------------------------

    @rule(count=st.integers(1, 6))
    def publish_plain(self, count: int) -> None:
        self._publish([Row(b"m")] * count, None)

    @rule(data=st.data(), count=st.integers(1, 6), only=st.none() | NAMES)
    def publish_mixed(self, data: st.DataObject, count: int, only: str | None) -> None:
        self._publish([data.draw(messages(self.queue.now_us)) for _ in range(count)], only)

    def _publish(self, published: list[Row], only: str | None) -> None:
        publication = self.queue.publish(rows(*published, only=only))
        for name, model in self.models.items():
            for offset, row in zip(publication.offsets, published, strict=True):
                model.publish(offset, row, only, self.queue.now_us)
                if model.messages[offset].place == SETTLED and (only not in (None, name) or not model.accepts(row)):
                    self.passed[name].add(offset)
        self._scan()

    def _scan(self) -> None:
        for subscription in self.queue.partition.subscriptions.values():
            self.queue.record(*self.queue.scan(subscription))

    @rule(name=NAMES, consumer=CONSUMERS, count=st.integers(1, 8), bound=st.booleans())
    def grant(self, name: str, consumer: str, count: int, bound: bool) -> None:
        model = self.models[name]
        # A consumer's leases are all bound to its connection or all not.
        consumer = f"{consumer}-{'bound' if bound else 'free'}"
        grantable = model.grantable_by_key(consumer)
        expected = model.grant_in_order(count)
        order: list[int] = []
        for event in self.queue.grants(consumer, count, name=name, bound=bound):
            offsets = listed(event.offsets)
            order.extend(offsets)
            model.granted(HeldLease(event.lease, consumer, event.deadline_us, bound), offsets)
        if name == "keyed":
            assert set(order) <= grantable, "a key out of order, or held by two"
            assert len(order) == min(count, len(grantable)), "something grantable was held back"
            for offset in order:
                self._check_earlier(model, offset, consumer)
        else:
            assert order == expected

    def _check_earlier(self, model: Model, offset: int, consumer: str) -> None:
        key = model.messages[offset].row.key
        for earlier in range(offset):
            message = model.messages[earlier]
            if key is not None and message.row.key == key and message.place != SETTLED:
                assert message.lease is not None, f"{offset} was granted before {earlier}"
                assert model.leases[message.lease].consumer == consumer

    def _some_lease(self, data: st.DataObject, name: str) -> tuple[int, list[int] | None]:
        """Any lease that ever was, and any offsets; None for all."""
        lease = data.draw(st.sampled_from(sorted(self.models[name].leases)))
        held = sorted(message.offset for message in self.models[name].held(lease))
        some = st.lists(st.sampled_from(held), unique=True) if held else st.just([])
        anything = st.lists(st.integers(0, self.queue.partition.end), max_size=3)
        return lease, data.draw(st.none() | some | anything)

    @precondition(lambda self: any(model.leases for model in self.models.values()))
    @rule(data=st.data(), action=st.sampled_from(["ack", "ack", "fail", "fail", "release", "extend"]))
    def answer(self, data: st.DataObject, action: str) -> None:
        name = data.draw(st.sampled_from([name for name, model in self.models.items() if model.leases]))
        subscription, model, now_us = self.queue[name], self.models[name], self.queue.now_us
        lease, offsets = self._some_lease(data, name)
        chosen = None if offsets is None else bitmap(*offsets)
        match action:
            case "ack":
                model.ack(lease, offsets)
                acked = subscription.ack(lease, chosen, now_us)
                self.queue.record(*([acked] if acked else []))
            case "fail":
                delay_us = data.draw(st.none() | PAUSES)
                model.fail(lease, offsets, now_us, delay_us)
                self.queue.record(*subscription.fail(lease, chosen, now_us, cause="nack", delay_us=delay_us))
            case "release":
                model.release(lease, offsets)
                self.queue.record(*subscription.release(lease, chosen))
            case "extend":
                deadline_us = now_us + data.draw(st.sampled_from([1, SECOND, 60 * SECOND]))
                model.extend(lease, deadline_us)
                extended = subscription.extend(lease, deadline_us)
                self.queue.record(*([extended] if extended else []))

    @rule(name=NAMES, consumer=CONSUMERS)
    def end_connection(self, name: str, consumer: str) -> None:
        self.queue.end_connection(f"{consumer}-bound", name)
        self.models[name].end_connection(f"{consumer}-bound", self.queue.now_us)

    @rule(pause_us=PAUSES)
    def wait(self, pause_us: int) -> None:
        self.queue.wait(pause_us / SECOND)
        for model in self.models.values():
            model.tick(self.queue.now_us)

    @precondition(lambda self: any(model.at(DYING) for model in self.models.values()))
    @rule(data=st.data())
    def bury(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from([name for name, model in self.models.items() if model.at(DYING)]))
        dead = data.draw(st.lists(st.sampled_from(sorted(self.models[name].at(DYING))), min_size=1, unique=True))
        self.queue.bury(*dead, name=name)
        self.models[name].bury(dead)

    @rule(name=NAMES, count=st.integers(1, 3))
    def drop_oldest(self, name: str, count: int) -> None:
        event = self.queue[name].oldest(count, self.queue.partition.end, self.queue.now_us)
        unsettled = sorted(set(self.models[name].messages) - self.models[name].at(SETTLED))[:count]
        assert (event is None) == (not unsettled)
        if event is not None:
            self.queue.happen(event)
            self.models[name].lose(unsettled)

    @precondition(lambda self: self.queue.partition.end > 0)
    @rule(data=st.data(), length=st.integers(1, 3))
    def lose(self, data: st.DataObject, length: int) -> None:
        start = data.draw(st.integers(0, self.queue.partition.end - 1))
        stop = min(start + length, self.queue.partition.end)
        self.queue.record(self.queue.partition.lose(start, stop, self.queue.now_us))
        self.lost.update(range(start, stop))
        for model in self.models.values():
            model.lose(range(start, stop))

    @rule(data=st.data(), name=NAMES)
    def seek(self, data: st.DataObject, name: str) -> None:
        offset = data.draw(st.integers(0, self.queue.partition.end))
        self.queue.seek(offset, name)
        self.models[name].seek(offset, self.lost, self.passed[name], self.queue.now_us)
        self._scan()

    @rule()
    def snapshot(self) -> None:
        self.queue.snapshot()

    @rule(late_scan=st.booleans(), pause_us=PAUSES)
    def restart(self, late_scan: bool, pause_us: int) -> None:
        """The timer may come before the scan, and the scan before the timer."""
        self.queue.restart()
        if late_scan:
            self.queue.wait(pause_us / SECOND)
            for model in self.models.values():
                model.restart(self.queue.now_us - pause_us)
                for message in model.messages.values():
                    message.stale = False
                model.tick(self.queue.now_us, keys_known=False)
                model.restart(self.queue.now_us)
            self._scan()
        else:
            self._scan()
            for model in self.models.values():
                model.restart(self.queue.now_us)
        # What the journal knew to be parked, and was ready, is ready again.
        self.wait(0)

    # --- what must hold -----------------------------------------------------------------------------------------------

    @invariant()
    def every_message_is_where_the_model_has_it(self) -> None:
        for name, model in self.models.items():
            self.queue[name].check(self.queue.partition.visible)
            _compare(self.queue[name], model, self.queue.partition)

    @invariant()
    def a_fold_of_the_journal_gives_the_same(self) -> None:
        recovered = self.queue.folded()
        for name, model in self.models.items():
            subscription = recovered.subscription(name)
            self.queue.scan(subscription, recovered)
            subscription.tick(self.queue.now_us)
            subscription.check(recovered.visible)
            # The clock has not moved since the last tick, but messages may have come due to expire since.
            restarted = model.restarted(self.queue.now_us)
            restarted.tick(self.queue.now_us)
            _compare(subscription, restarted, recovered)


def _compare(subscription: Subscription, model: Model, partition: Partition) -> None:
    settled = set(range(partition.end)) - set(subscription.settled.without(0, partition.end))
    assert settled == model.at(SETTLED)
    assert set(subscription.backlog.check()) == model.at(READY)
    assert set(subscription.leases.outstanding) == model.at(LEASED)
    assert set(subscription.parked.members) == model.at(PARKED)
    assert set(subscription.dying.members) == model.at(DYING)
    assert {o: n for o in range(partition.end) if (n := subscription.attempts.failures(o))} == model.failures()
    for lease in subscription.leases.by_id.values():
        assert set(lease.offsets) == {message.offset for message in model.held(lease.id)}
        assert lease.deadline_us == model.leases[lease.id].deadline_us


DeliveryMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40)
TestDelivery = DeliveryMachine.TestCase
