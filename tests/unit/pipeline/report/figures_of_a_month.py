"""Figures of a month with six topics and planted anomalies, as a broker that is used would have them."""

from __future__ import annotations

import math
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from sealane.pipeline.report.figures import (
    Anomaly,
    Balance,
    DeadLetters,
    Deliveries,
    Figures,
    Problem,
    Proven,
    Reader,
    Routes,
    RouteWeight,
    Series,
    Span,
    Topic,
    Traffic,
)

SINCE = datetime(2026, 3, 2, tzinfo=UTC)
UNTIL = SINCE + timedelta(days=30)
HOSTILE = '<script>document.title="owned"</script>'
HOSTILE_ATTRIBUTE = "\"onload='document.title=\"owned\"' x=\"<img src=x onerror=document.title='owned'>"

_HOURLY = {
    "shop/orders": 42_000,
    "shop/payments": 30_500,
    "shop/shipments": 12_800,
    "iot/readings": 61_000,
    "mail/outgoing": 5_400,
    "audit/events": 8_900,
}
_OUTAGE = range(150, 156)
"""Steps in which nothing was settled: what is not known is a gap."""
_SPIKE = range(232, 238)


def month(seed: int = 1) -> Figures:
    """All is well: every section has something to tell, and the proof holds."""
    choose = random.Random(seed)
    span = Span.between(SINCE, UNTIL)
    hours = span.step_seconds / 3600
    by_topic = tuple(
        Series(name, tuple(_came(choose, span, step, hourly * hours, name) for step in range(span.steps)))
        for name, hourly in sorted(_HOURLY.items(), key=lambda item: -item[1])
    )
    published = {each.name: int(sum(value or 0 for value in each.values)) for each in by_topic}
    return Figures(
        made=UNTIL + timedelta(minutes=12),
        span=span,
        traffic=_traffic(by_topic, published),
        deliveries=_deliveries(choose, span, published),
        dead_letters=_dead_letters(),
        anomalies=_anomalies(span),
        anomalies_in_all=4,
        proven=_proven(published),
        routes=_routes(),
    )


def broken_month() -> Figures:
    """The same month, with three messages missing and one that was settled twice."""
    figures = month()
    assert figures.proven is not None
    problems = tuple(
        Problem("missing", "shop/orders", 2, 8_812_004 + at, f"{at:032x}", "billing", "the subscription is past it")
        for at in range(3)
    )
    twice = Problem("duplicated", "shop/payments", 0, 77, f"{99:032x}", "ledger", "settled more than once")
    first, *others = figures.proven.balance
    spoiled = replace(first, acked=first.acked - 3, missing=3)
    proven = replace(
        figures.proven,
        balance=(spoiled, *others),
        problems=(*problems, twice),
        counts={"missing": 3, "duplicated": 1},
    )
    return replace(figures, proven=proven)


def hostile_month() -> Figures:
    """The same month, of which every name and reason was chosen by somebody who wants more than to be read."""
    figures = month()
    assert figures.traffic
    assert figures.deliveries
    assert figures.anomalies
    assert figures.proven
    assert figures.routes
    name, attribute = HOSTILE, HOSTILE_ATTRIBUTE
    letters = DeadLetters(name, attribute, name, attribute, 7, SINCE, UNTIL)
    anomaly = replace(figures.anomalies[0], topic=name, subscription=attribute, measure="rate " + attribute)
    series = [replace(each, name=attribute if index else name) for index, each in enumerate(figures.traffic.by_topic)]
    return replace(
        figures,
        traffic=replace(figures.traffic, by_topic=tuple(series), topics=(Topic(name, 1, 1), Topic(attribute, 1, 1))),
        deliveries=replace(
            figures.deliveries,
            depth=(
                replace(figures.deliveries.depth[0], name=name),
                replace(figures.deliveries.depth[1], name=attribute),
            ),
            readers=(replace(figures.deliveries.readers[0], topic=name, subscription=attribute),),
        ),
        dead_letters=(letters,),
        anomalies=(replace(anomaly, contributed=name, kind=attribute),),
        proven=replace(
            figures.proven,
            balance=(replace(figures.proven.balance[0], topic=name, subscription=attribute),),
            problems=(Problem(name, attribute, 0, 1, name, attribute, attribute),),
            counts={name: 1},
        ),
        routes=replace(figures.routes, weights=(RouteWeight(name, attribute, 1.0, 1.0, 0.5, 3),)),
    )


# --- its parts --------------------------------------------------------------------------------------------------------


def _season(span: Span, step: int) -> float:
    """Quiet nights and weekends."""
    time = span.time(step)
    day = 0.55 + 0.45 * math.sin(math.tau * (time.hour - 8) / 24)
    return day * (0.45 if time.weekday() >= 5 else 1.0) + 0.08


def _came(choose: random.Random, span: Span, step: int, usual: float, name: str) -> float:
    steady = 1.0 if name.startswith("iot") else _season(span, step)
    spike = 3.2 if name == "shop/orders" and step in _SPIKE else 1.0
    silent = 0.0 if name == "mail/outgoing" and step in _OUTAGE else 1.0
    return round(usual * steady * spike * silent * choose.uniform(0.92, 1.08))


def _traffic(by_topic: tuple[Series, ...], published: dict[str, int]) -> Traffic:
    sizes = {"iot/readings": 96, "audit/events": 1_480}
    topics = tuple(Topic(name, count, count * sizes.get(name, 410)) for name, count in published.items())
    week = tuple(
        tuple(
            round(650_000 * (0.6 + 0.4 * math.sin(math.tau * (hour - 8) / 24)) * (0.5 if day > 4 else 1))
            for hour in range(24)
        )
        for day in range(7)
    )
    return Traffic(sum(published.values()), sum(topic.size_bytes for topic in topics), topics, by_topic, week)


def _deliveries(choose: random.Random, span: Span, published: dict[str, int]) -> Deliveries:
    def latency(usual: float) -> tuple[float | None, ...]:
        return tuple(
            None if step in _OUTAGE else usual * choose.uniform(0.85, 1.2) * (9 if step in _SPIKE else 1)
            for step in range(span.steps)
        )

    depths = (("shop/orders billing", 420), ("shop/payments ledger", 130), ("mail/outgoing smtp", 60))
    depth = tuple(
        Series(
            name,
            tuple(
                float(round(usual * _season(span, step) * choose.uniform(0.6, 1.4) * (8 if step in _SPIKE else 1)))
                for step in range(span.steps)
            ),
        )
        for name, usual in depths
    )
    errors = tuple(
        None if step in _OUTAGE else choose.uniform(0, 0.0006) * (14 if step in _SPIKE else 1)
        for step in range(span.steps)
    )
    readers = tuple(
        Reader(name, reader, count - left, errors_of, errors_of * 3, 4.2, 18.5, p99, left)
        for (name, count), (reader, left, errors_of, p99) in zip(
            published.items(),
            [
                ("storage", 0, 0, 44.0),
                ("billing", 118, 3_120, 390.0),
                ("ledger", 24, 34, 120.5),
                ("warehouse", 0, 15, 88.0),
                ("search", 0, 0, 61.0),
                ("smtp", 9, 1_771, 12_400.0),
            ],
            strict=True,
        )
    )
    return Deliveries(
        settled=sum(reader.settled for reader in readers),
        dead=4_906,
        latency_p95_ms=18.5,
        readers=readers,
        latency_ms=tuple(Series(name, latency(usual)) for name, usual in (("p50", 4.2), ("p95", 18.5), ("p99", 210.0))),
        error_ratio=Series("error ratio", errors),
        depth=depth,
    )


def _dead_letters() -> tuple[DeadLetters, ...]:
    rows = [
        ("shop/orders", "billing", "nack", "customer has no address", 2_690),
        ("mail/outgoing", "smtp", "nack", "mailbox full", 1_340),
        ("mail/outgoing", "smtp", "lease expired", "", 431),
        ("shop/orders", "billing", "nack", "card was declined by the bank after three attempts in one hour", 430),
        ("shop/shipments", "warehouse", "nack", "no such shelf", 15),
    ]
    return tuple(DeadLetters(*row, SINCE + timedelta(days=2), UNTIL - timedelta(hours=5)) for row in rows)


def _anomalies(span: Span) -> tuple[Anomaly, ...]:
    def at(steps: range) -> tuple[datetime, datetime]:
        return span.time(steps.start), span.time(steps.stop)

    spike, outage = at(_SPIKE), at(_OUTAGE)
    blame = "producer web-7: 61 % of all, 4 % before"
    return (
        Anomaly("shop/orders", "billing", "depth", "baseline", *spike, 1_790, 90, 700, 8.1, ""),
        Anomaly("shop/orders", "", "rate", "baseline", *spike, 2_260, 410, 960, 11.8, blame),
        Anomaly("shop/orders", "billing", "latency", "rule", *spike, 171, None, 50, 3.42, ""),
        Anomaly("mail/outgoing", "", "rate", "baseline", *outage, 0, 38, 120, 7.7, "every producer fell silent"),
    )


def _proven(published: dict[str, int]) -> Proven:
    rows = []
    readers = {
        "shop/orders": ("billing", 118, 3_120),
        "shop/payments": ("ledger", 24, 0),
        "mail/outgoing": ("smtp", 9, 1_771),
        "shop/shipments": ("warehouse", 0, 15),
        "audit/events": ("search", 0, 0),
    }
    for topic, count in published.items():
        subscription, in_flight, dead = readers.get(topic, ("storage", 0, 0))
        expired = 34 if topic == "shop/payments" else 0
        acked = count - in_flight - dead - expired
        rows.append(Balance(topic, subscription, count, acked, dead, expired, 0, 0, in_flight, 0))
    return Proven(UNTIL, tuple(sorted(rows, key=lambda row: row.topic != "shop/orders")), (), {})


def _routes() -> Routes:
    shares = {"*": (0.34, 0.33, 0.33), "shop/orders": (0.46, 0.36, 0.18), "iot/readings": (0.28, 0.31, 0.41)}
    weights = tuple(
        RouteWeight(topic, f"node-{index + 1}", weight, 3.1 + 2 * index, weight * 1.6, round(weight * 900_000))
        for topic, parts in shares.items()
        for index, weight in enumerate(parts)
    )
    return Routes(717, UNTIL, 38, weights)
