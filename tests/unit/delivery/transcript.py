"""Scenarios as text: commands to a small queue, and what they answered.

A transcript is comments (`#`) and blocks: a command, a line `----`, and what came of it. Offsets are written as runs
(`0-4 7`), moments as time since the start (`+1.5s`).

    subscribe NAME [queue|key-shared] [attempts=N] [fixed=SECONDS] [filter=EXPRESSION]
    publish COUNT [only=NAME]                    that many plain messages
    publish FIELDS | FIELDS … [only=NAME]        a message each: key= priority= ttl= delay= id=
    grant CONSUMER COUNT [on=NAME] [unbound]     unbound: the lease is not tied to a connection
    ack|nack|release OFFSETS [on=NAME]           nack takes delay=SECONDS and reason=WORDS
    late-ack LEASE | extend LEASE SECONDS | disconnect CONSUMER | bury OFFSETS | seek OFFSET   (each [on=NAME])
    lose OFFSETS | wait SECONDS | snapshot | restart | state
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterable, Iterator

from pyroaring import BitMap64

from sealane.delivery.config import Retry
from sealane.delivery.events import (
    Acked,
    Advanced,
    DeadLettered,
    Dropped,
    Event,
    Expired,
    Extended,
    Failed,
    Granted,
    Lost,
    Published,
    Released,
    Sought,
    Subscribed,
)
from sealane.delivery.offsets import Packed, runs, unpack
from sealane.delivery.subscription import Subscription
from sealane.message import Row
from tests.unit.delivery.small_queue import SECOND, START_US, SmallQueue, bitmap, plain, rows

BLOCK = re.compile(r"(?P<command>^[^#\n].*)\n----\n(?P<answer>(?:.+\n)*)", re.MULTILINE)


def play(text: str) -> str:
    """The transcript as it is now: the same commands, with what they answer."""
    stage = Stage()
    return BLOCK.sub(lambda block: f"{block['command']}\n----\n{stage.answer(block['command'])}", text)


class Stage:
    def __init__(self) -> None:
        self.queue = SmallQueue()

    def answer(self, command: str) -> str:
        word, *arguments = shlex.split(command)
        seen = len(self.queue.events)
        act: Callable[[list[str], dict[str, str]], Iterable[str] | None] = getattr(self, f"do_{word.replace('-', '_')}")
        options = dict(argument.split("=", 1) for argument in arguments if "=" in argument)
        plain_arguments = [argument for argument in arguments if "=" not in argument]
        if word == "publish":
            plain_arguments = arguments
        lines = act(plain_arguments, options)
        self.queue.check()
        if lines is None:
            lines = [describe(event) for event in self.queue.events[seen:]] or ["nothing"]
        return "".join(f"{line}\n" for line in lines)

    def do_subscribe(self, arguments: list[str], options: dict[str, str]) -> None:
        attempts = int(options.get("attempts", 16))
        retry = Retry(attempts_max=attempts)
        if "fixed" in options:
            retry = Retry(kind="fixed", delay_seconds=float(options["fixed"]), attempts_max=attempts)
        self.queue.subscribe(*arguments, retry=retry, filter=options.get("filter"))

    def do_publish(self, arguments: list[str], options: dict[str, str]) -> list[str] | None:
        arguments = [argument for argument in arguments if not argument.startswith("only=")]
        if arguments[0].isdecimal():
            batch = plain(int(arguments[0]))
        else:
            messages = " ".join(arguments).split(" | ")
            batch = rows(*(self._row(dict(field.split("=") for field in message.split())) for message in messages))
        if "only" in options:
            batch = rows(*[Row(b"m")] * len(batch), only=options["only"])
        publication = self.queue.publish(batch)
        if publication.batch is None or list(publication.offsets) != list(
            range(publication.base, self.queue.partition.end)
        ):
            return [f"stored at {' '.join(map(str, publication.offsets))}"]
        return None

    def _row(self, fields: dict[str, str]) -> Row:
        def moment(name: str) -> int | None:
            return self.queue.now_us + round(float(fields[name]) * SECOND) if name in fields else None

        return Row(
            b"m",
            key=fields["key"].encode() if "key" in fields else None,
            priority=int(fields.get("priority", 5)),
            expires_us=moment("ttl"),
            deliver_at_us=moment("delay"),
            id=int(fields["id"]).to_bytes(16, "big") if "id" in fields else None,
        )

    def do_grant(self, arguments: list[str], options: dict[str, str]) -> None:
        consumer, count, *how = arguments
        self.queue.grants(consumer, int(count), name=options.get("on", "billing"), bound="unbound" not in how)

    def do_ack(self, arguments: list[str], options: dict[str, str]) -> None:
        name = options.get("on", "billing")
        these = parse(arguments)
        event = self.queue[name].ack(self.queue.lease_of(these.min(), name), these, self.queue.now_us)
        self.queue.record(*[event] if event else [])

    def do_late_ack(self, arguments: list[str], options: dict[str, str]) -> None:
        event = self.queue[options.get("on", "billing")].ack(int(arguments[0]), None, self.queue.now_us)
        self.queue.record(*[event] if event else [])

    def do_nack(self, arguments: list[str], options: dict[str, str]) -> None:
        delay_us = round(float(options["delay"]) * SECOND) if "delay" in options else None
        name = options.get("on", "billing")
        self.queue.nack(*parse(arguments), delay_us=delay_us, reason=options.get("reason"), name=name)

    def do_release(self, arguments: list[str], options: dict[str, str]) -> None:
        self.queue.release(*parse(arguments), name=options.get("on", "billing"))

    def do_extend(self, arguments: list[str], options: dict[str, str]) -> None:
        deadline_us = self.queue.now_us + round(float(arguments[1]) * SECOND)
        event = self.queue[options.get("on", "billing")].extend(int(arguments[0]), deadline_us)
        self.queue.record(*[event] if event else [])

    def do_disconnect(self, arguments: list[str], options: dict[str, str]) -> None:
        self.queue.end_connection(arguments[0], options.get("on", "billing"))

    def do_bury(self, arguments: list[str], options: dict[str, str]) -> None:
        self.queue.bury(*parse(arguments), name=options.get("on", "billing"))

    def do_seek(self, arguments: list[str], options: dict[str, str]) -> None:
        self.queue.seek(int(arguments[0]), options.get("on", "billing"))

    def do_lose(self, arguments: list[str], options: dict[str, str]) -> None:
        these = parse(arguments)
        self.queue.record(self.queue.partition.lose(these.min(), these.max() + 1, self.queue.now_us))

    def do_wait(self, arguments: list[str], options: dict[str, str]) -> list[str]:
        events = self.queue.wait(float(arguments[0]))
        return [f"it is {moment(self.queue.now_us)}", *map(describe, events)]

    def do_snapshot(self, arguments: list[str], options: dict[str, str]) -> list[str]:
        entries = len(self.queue.journal)
        self.queue.snapshot()
        return [f"{entries} journal entries become 1"]

    def do_restart(self, arguments: list[str], options: dict[str, str]) -> list[str]:
        self.queue.restart()
        return [f"{len(self.queue.journal)} journal entries folded", *self._states()]

    def do_state(self, arguments: list[str], options: dict[str, str]) -> list[str]:
        for subscription in self.queue.partition.subscriptions.values():
            self.queue.record(*self.queue.scan(subscription))
        return list(self._states())

    def _states(self) -> Iterator[str]:
        for subscription in self.queue.partition.subscriptions.values():
            yield f"{subscription.name}: {'; '.join(state_of(subscription, self.queue.partition.end))}"


def state_of(subscription: Subscription, end: int) -> Iterator[str]:
    settled = subscription.settled
    yield f"settled below {settled.floor}" + (f" and {spell(settled.above)}" if settled.above else "")
    ready = subscription.backlog.check()
    if ready:
        yield f"ready {spell(ready)}"
    for lease in subscription.leases.by_id.values():
        yield f"{lease.consumer} holds {spell(lease.offsets)} until {moment(lease.deadline_us)}"
    for due_us, offsets in subscription.parked.items():
        yield f"{spell(offsets)} waits until {moment(due_us)}"
    for group in subscription.dying:
        yield f"dying {spell(group.offsets)} ({group.reason or group.cause})"
    unscanned = settled.without(subscription.scanned, end) - subscription.leases.outstanding
    unscanned -= subscription.parked.members | subscription.dying.members
    if unscanned:
        yield f"not scanned {spell(unscanned)}"
    for failures, offsets in subscription.attempts.by_failures(settled.without(0, end)):
        if failures:
            yield f"{spell(offsets)} failed {failures}×"


def describe(event: Event) -> str:
    """An event as a sentence."""
    match event:
        case Published(base=base, count=count):
            return f"published {spell((base, base + count))}" + (
                "" if event.only is None else f" for {event.only} only"
            )
        case Subscribed(subscription=name, config=config, floor=floor):
            return f"{name} is a {config.mode} subscription from {floor} on"
        case Granted(lease=lease, consumer=consumer, offsets=offsets):
            return f"lease {lease}: {consumer} holds {spell(offsets)} until {moment(event.deadline_us)}"
        case Acked(lease=lease, offsets=offsets):
            return f"lease {lease}: acked {spell(offsets)}"
        case Failed(lease=lease, offsets=offsets, due_us=due_us, cause=cause):
            reason = f" ({event.reason})" if event.reason else ""
            return f"lease {lease}: failed {spell(offsets)} by {cause}{reason}, due {moment(due_us)}"
        case Released(lease=lease, offsets=offsets):
            return f"lease {lease}: released {spell(offsets)}"
        case Extended(lease=lease, deadline_us=deadline_us):
            return f"lease {lease}: extended until {moment(deadline_us)}"
        case DeadLettered(offsets=offsets):
            return f"dead letters {spell(offsets)}"
        case Expired(subscription=name, offsets=offsets):
            return f"expired {spell(offsets)} on {name}"
        case Dropped(offsets=offsets):
            return f"dropped {spell(offsets)}"
        case Sought(subscription=name, offset=offset):
            return f"{name} begins again at {offset}"
        case Advanced(subscription=name, offset=offset):
            return f"{name} has everything below {offset} behind it"
        case Lost(start=start, stop=stop):
            return f"lost {spell((start, stop))}"
        case _:
            return type(event).__name__


def parse(arguments: Iterable[str]) -> BitMap64:
    offsets = bitmap()
    for argument in arguments:
        first, _, last = argument.partition("-")
        offsets.add_range(int(first), int(last or first) + 1)
    return offsets


def spell(offsets: Packed | BitMap64) -> str:
    found = offsets if isinstance(offsets, BitMap64) else unpack(offsets)
    return " ".join(str(start) if stop == start + 1 else f"{start}-{stop - 1}" for start, stop in runs(found)) or "none"


def moment(time_us: int) -> str:
    return f"{(time_us - START_US) / SECOND:+g}s"
