"""What the clients of a simulated broker do: drawn from a seed, as data.

Topics and subscriptions are settings of the scenario and exist from the start, so that any step can be left out.
"""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

from tests.simulation.faults import EVERYTHING, Fault, FaultKind, draw_faults
from tests.simulation.scenario import Scenario, Step

KEYS = ("k1", "k2", "k3", "k4")
FOREVER_SECONDS = 1e9
"""A retention that no clock jump reaches."""
CLOCK_JUMPS_SECONDS = (-600.0, -40.0, -1.0, -0.001, 0.5, 5.0, 40.0, 3_600.0)
"""Shorter than what ids and transactions are remembered for: what is forgotten in time is not a finding."""
FAULTS: dict[FaultKind, float] = {**EVERYTHING, "bit_flip": 2, "sync_error": 2}
"""More of those that a broker is least often tried with."""
RESTS = (0.0, 0.0, 0.0, 0.001, 0.01, 0.1, 0.5, 1.5)
FINE = ("ack", "ack", "ack", "confirm", "confirm", "confirm", "nack", "extend", "stall", "ignore")
TEMPORARY = "temp"
"""A topic that is deleted and made again."""
IN_MEMORY = "memory"


def draw_broker(seed: int) -> Scenario:
    """Producers, consumers and an operator on a few topics, for some seconds, while things go wrong."""
    rng = random.Random(f"{seed} broker")
    drawing = _Drawing(rng)
    for _ in range(rng.randint(25, 80)):
        drawing.add_step()
    faults = draw_faults(rng, FAULTS, count_max=5, seconds=8.0, operations=500)
    storage = {
        "segment_bytes": rng.choice((4_096, 16_384, 65_536)),
        "commit": rng.choice(("auto", "inline", "thread")),
        "compaction": rng.random() < 0.7,
        "tail_bytes_max": rng.choice((2_000, 20_000, 1_000_000)),
    }
    node = {
        "snapshot_journal_bytes": rng.choice((300, 1_000, 5_000)),
        "journal_events_max": rng.choice((5, 50)),
        "grant_flush_seconds": rng.choice((0.01, 1.0)),
        "delivery_bytes_max": rng.choice((500, 5_000, 1_000_000)),
        "retention_check_seconds": rng.choice((0.5, 3.0)),
    }
    settings = {
        "topics": drawing.topics,
        "subscriptions": drawing.subscriptions,
        "exchange": drawing.exchange,
        "storage": storage,
        "node": node,
        "audit": random.Random(f"{seed} audit").random() < 0.5,
        "after_failure": rng.choice(("kill", "power")),
    }
    return Scenario("broker", seed, tuple(drawing.steps), tuple(_tame(rng, fault) for fault in faults), settings)


def _tame(rng: random.Random, fault: Fault) -> Fault:
    return replace(fault, seconds=rng.choice(CLOCK_JUMPS_SECONDS)) if fault.kind == "clock_jump" else fault


class _Drawing:
    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._labels = 0
        self._sequences: dict[str, int] = {}
        self.steps: list[Step] = []
        self.topics: dict[str, dict[str, Any]] = {}
        self.subscriptions: list[dict[str, Any]] = []
        for name in ("a", "b", "c")[: rng.randint(1, 3)]:
            self._draw_topic(name)
        self.exchange = sorted(self.topics) if len(self.topics) > 1 and rng.random() < 0.5 else []
        self.lasting = [name for name, topic in self.topics.items() if topic["retention_seconds"] == FOREVER_SECONDS]
        if rng.random() < 0.3:
            self.topics[IN_MEMORY] = {"partitions": rng.randint(1, 2), "durable": False}
            self._subscribe(IN_MEMORY, "s0", rng.choice(("queue", "key-shared")))
        self._has_temporary = rng.random() < 0.3

    def _draw_topic(self, name: str) -> None:
        rng = self._rng
        lasting = rng.random() < 0.6
        self.topics[name] = {
            "partitions": rng.choice((1, 1, 2, 3)),
            "sealed": rng.random() < 0.5,
            "retention_seconds": FOREVER_SECONDS if lasting else 0.0,
            "id_window_seconds": 100_000.0,
        }
        modes = ["queue", "queue", "exclusive", "key-shared", "key-shared"] + ["broadcast"] * lasting
        for number in range(rng.randint(1, 3)):
            self._subscribe(name, f"s{number}", rng.choice(modes))

    def _subscribe(self, topic: str, name: str, mode: str) -> None:
        rng = self._rng
        self.subscriptions.append(
            {
                "topic": topic,
                "name": name,
                "mode": mode,
                # What dies in memory is gone before anyone looks at the dead letters.
                "attempts_max": 1_000 if topic == IN_MEMORY else rng.choice((2, 3, 16)),
                "lease_seconds": rng.choice((0.2, 1.0, 5.0)),
                "retry": rng.choice(("fixed", "exponential")),
                "retry_seconds": rng.choice((0.0, 0.05, 1.0)),
                "only_key": rng.choice((None, None, None, "k1")),
                "auto_ack": mode == "queue" and rng.random() < 0.1,
            }
        )

    # --- steps --------------------------------------------------------------------------------------------------------

    def add_step(self) -> None:
        rng = self._rng
        verbs = {
            "publish": 10,
            "consume": 10,
            "transact": 2,
            "seek": 0.4,
            "redrive": 0.6,
            "use_temporary": 3 * self._has_temporary,
        }
        verb = rng.choices(list(verbs), list(verbs.values()))[0]
        getattr(self, f"_{verb}")(rng.choice(RESTS))

    def _publish(self, rest: float) -> None:
        rng = self._rng
        hows = ["one", "one", "together", "many", "producer", "once", "idempotent"] + ["exchange"] * bool(self.exchange)
        how = rng.choice(hows)
        topic = rng.choice(sorted(self.topics))
        count = 1 if how in ("one", "exchange") else rng.randint(1, 6)
        actor = f"producer-{rng.randrange(3)}"
        args: dict[str, Any] = {"topic": topic, "how": how}
        args["messages"] = [self._message(plain=how == "many" or rng.random() < 0.6) for _ in range(count)]
        if how == "idempotent":
            args["sequence"] = self._sequences[actor] = self._sequences.get(actor, -1) + 1
        self.steps.append(Step(actor, "publish", args, after=rest))
        if how in ("once", "idempotent"):
            # A producer that did not hear what became of it sends it again; here it may also have heard.
            for _ in range(rng.choice((0, 1, 1, 2))):
                self.steps.append(Step(actor, "publish", args, after=rng.choice(RESTS)))

    def _message(self, *, plain: bool) -> dict[str, Any]:
        rng = self._rng
        self._labels += 1
        message: dict[str, Any] = {"label": f"m{self._labels}", "bytes": rng.choice((0, 10, 100, 1_000))}
        if not plain:
            if rng.random() < 0.8:
                message["key"] = rng.choice(KEYS)
            if rng.random() < 0.2:
                message["priority"] = rng.randint(1, 10)
            if rng.random() < 0.15:
                message["delay"] = rng.choice((0.01, 0.5, 3.0))
            if rng.random() < 0.15:
                message["ttl"] = rng.choice((0.05, 1.0, 4.0))
        return message

    def _consume(self, rest: float) -> None:
        rng = self._rng
        subscription = rng.choice(self.subscriptions)
        transacting = bool(self.lasting) and subscription["topic"] != IN_MEMORY and rng.random() < 0.2
        args: dict[str, Any] = {
            "topic": subscription["topic"],
            "subscription": subscription["name"],
            "actions": [rng.choice(FINE) for _ in range(rng.choice((1, 3, 10, 30)))],
            "seconds": rng.choice((0.05, 0.5, 2.0)),
            "prefetch": rng.choice((1, 2, 10, 1_000)),
            "batches": rng.random() < 0.25,
            "leave": rng.choice(("consumer", "consumer", "lane")),
        }
        if transacting:
            args["transaction"] = self._transaction()
        self.steps.append(Step(f"consumer-{rng.randrange(4)}", "consume", args, after=rest))
        if transacting and rng.random() < 0.6:
            self._retry_later(args["transaction"])

    def _transact(self, rest: float) -> None:
        if self.lasting:
            transaction = self._transaction()
            actor = f"producer-{self._rng.randrange(3)}"
            self.steps.append(Step(actor, "transact", {"transaction": transaction}, after=rest))
            if self._rng.random() < 0.6:
                self._retry_later(transaction)

    def _transaction(self) -> dict[str, Any]:
        messages = [
            {**self._message(plain=True), "topic": self._rng.choice(self.lasting), "key": self._rng.choice(KEYS)}
            for _ in range(self._rng.randint(1, 3))
        ]
        return {"id": f"tx-{messages[0]['label']}", "messages": messages}

    def _retry_later(self, transaction: dict[str, Any]) -> None:
        actor = f"producer-{self._rng.randrange(3)}"
        self.steps.append(Step(actor, "transact", {"transaction": transaction}, after=self._rng.choice(RESTS)))

    def _seek(self, rest: float) -> None:
        durable = [one for one in self.subscriptions if one["mode"] != "broadcast"]
        if durable:
            subscription = self._rng.choice(durable)
            to = self._rng.choice(("earliest", "earliest", "latest", "offset"))
            args = {"topic": subscription["topic"], "subscription": subscription["name"], "to": to}
            self.steps.append(Step("operator", "seek", {**args, "offset": self._rng.randrange(20)}, after=rest))

    def _redrive(self, rest: float) -> None:
        lasting = [one for one in self.subscriptions if one["topic"] in self.lasting and one["mode"] != "broadcast"]
        if lasting:
            subscription = self._rng.choice(lasting)
            args = {"topic": subscription["topic"], "subscription": subscription["name"]}
            args["messages_max"] = self._rng.choice((1, None))
            self.steps.append(Step("operator", "redrive", args, after=rest))

    def _use_temporary(self, rest: float) -> None:
        """One actor makes, fills and deletes the topic, so that it knows which one it publishes to."""
        rng = self._rng
        match rng.choice(("create", "publish", "publish", "consume", "delete")):
            case "create" | "delete" as verb:
                self.steps.append(Step("operator", verb, {"topic": TEMPORARY}, after=rest))
            case "publish":
                messages = [self._message(plain=True) for _ in range(rng.randint(1, 4))]
                args = {"topic": TEMPORARY, "how": "many", "messages": messages}
                self.steps.append(Step("operator", "publish", args, after=rest))
            case "consume":
                taking: dict[str, Any] = {
                    "topic": TEMPORARY,
                    "subscription": "s0",
                    "actions": [rng.choice(FINE) for _ in range(10)],
                    "seconds": rng.choice((0.05, 2.0)),
                    "prefetch": 10,
                    "batches": False,
                    "leave": "consumer",
                }
                self.steps.append(Step(f"consumer-{rng.randrange(4)}", "consume", taking, after=rest))
