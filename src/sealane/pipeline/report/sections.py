"""The sections of the page, in their order. One that has no table to come from says how to get it."""

from __future__ import annotations

from dataclasses import dataclass

from sealane.pipeline.report.bars import bar, week
from sealane.pipeline.report.charts import Heading, Mark, legend, lines, lines_with_band, stacked_bars
from sealane.pipeline.report.figures import (
    Balance,
    Deliveries,
    Figures,
    Proven,
    Reader,
    Span,
    Traffic,
)
from sealane.pipeline.report.findings import anomalies, dead_letters, route_weights
from sealane.pipeline.report.markup import Markup, element, joined
from sealane.pipeline.report.measures import is_of, told
from sealane.pipeline.report.numbers import milliseconds, per, percent, several, size_bytes
from sealane.pipeline.report.tables import Cell, absent, name, number, table

RUN = "sealane pipeline run --once"
RECONCILE = "sealane pipeline reconcile"


@dataclass(frozen=True, slots=True)
class End:
    """What may become of a message. One that happened nowhere is left out of the table, unless people look for it."""

    style: str
    name: str
    words: str
    always: bool = True

    def of(self, row: Balance) -> int:
        return int(getattr(row, self.name))


ENDS = (
    End("s2", "acked", "acked"),
    End("s5", "dead_lettered", "dead letters"),
    End("s1", "expired", "expired", always=False),
    End("s3", "dropped", "dropped", always=False),
    End("rest", "passed_over", "passed over", always=False),
    End("s4", "in_flight", "in flight"),
    End("missing", "missing", "missing"),
)


def sections(figures: Figures) -> list[tuple[str, Markup]]:
    """Of each its title and what is in it."""
    span = figures.span
    if span is None:
        return []
    return [
        ("Reconciliation", _reconciliation(figures.proven)),
        ("Traffic", _traffic(figures.traffic, span, _marks(figures, "rate"))),
        ("Latency", _latency(figures.deliveries, span, _marks(figures, "latency"))),
        ("Backlog", _backlog(figures.deliveries, span, _marks(figures, "depth"))),
        ("Errors", _errors(figures.deliveries, span, _marks(figures, "error"))),
        ("Anomalies", anomalies(figures)),
        ("Dead letters", dead_letters(figures)),
        ("Routes", route_weights(figures.routes)),
    ]


def _marks(figures: Figures, measure: str) -> list[Mark]:
    """Anomalies of a measure, as the charts of it show them, within the span."""
    return [
        Mark(each.began, each.ended, told(each))
        for each in figures.anomalies or ()
        if is_of(each, measure) and figures.span and each.ended >= figures.span.since
    ]


def _reconciliation(proven: Proven | None) -> Markup:
    if proven is None:
        return absent("No proof was made yet. This command draws the balance, and names what breaks it:", RECONCILE)
    if not proven.balance:
        return absent("No subscription has had anything yet.")
    ends = [end for end in ENDS if end.always or any(end.of(row) for row in proven.balance)]
    columns = ["topic", "subscription", "", ">published", *(f">{end.words}" for end in ends)]
    parts = [legend((end.style, end.words) for end in ends)]
    parts.append(table("The balance of each subscription", columns, [_balance(row, ends) for row in proven.balance]))
    if proven.problems:
        parts.append(_problems(proven))
    return joined(parts)


def _balance(row: Balance, ends: list[End]) -> list[Cell | str]:
    drawn = bar([(end.style, end.of(row), f"{end.words}: {end.of(row):,}") for end in ends], row.published)
    cells = [number(end.of(row), style="wrong" if end.name == "missing" and end.of(row) else None) for end in ends]
    return [name(row.topic), name(row.subscription), Cell(drawn, style="drawn"), number(row.published), *cells]


def _problems(proven: Proven) -> Markup:
    in_all = sum(proven.counts.values())
    caption = f"{several(in_all, 'message breaks', 'messages break')} the balance"
    if in_all > len(proven.problems):
        caption += f"; the first {len(proven.problems)}"
    return table(
        caption,
        ["problem", "topic", ">partition", ">offset", "id", "subscription", "what"],
        [
            [
                *(each.problem, name(each.topic), number(each.partition), number(each.offset)),
                *(Cell(element("code", each.id)), name(each.subscription), each.detail),
            ]
            for each in proven.problems
        ],
    )


def _traffic(traffic: Traffic | None, span: Span, marks: list[Mark]) -> Markup:
    if traffic is None:
        return absent("No message was taken in yet. This command does it:", RUN)
    if not traffic.topics:
        return absent("Nothing was published in this time.")
    heading = Heading("Messages published", f"{per(span.step_seconds)}, by topic")
    rows = [
        [
            name(each.name),
            Cell(bar([("s0", each.published, "")], traffic.topics[0].published), style="drawn"),
            number(each.published),
            number(each.published / max(traffic.published, 1), percent(each.published / max(traffic.published, 1))),
            number(each.size_bytes, size_bytes(each.size_bytes)),
        ]
        for each in traffic.topics
    ]
    return joined(
        [
            stacked_bars(heading, span, traffic.by_topic, marks),
            week(traffic.by_hour),
            table("Topics", ["topic", "", ">published", ">share", ">size"], rows),
        ]
    )


def _latency(deliveries: Deliveries | None, span: Span, marks: list[Mark]) -> Markup:
    if deliveries is None:
        return absent("No delivery was settled yet, or its history was not taken in. This command does it:", RUN)
    heading = Heading("From published to settled", f"of all that was settled, {per(span.step_seconds)}", "ms")
    columns = ["topic", "subscription", ">settled", ">errors", ">repeated", ">p50", ">p95", ">p99", ">left to do"]
    return joined(
        [
            lines_with_band(heading, span, deliveries.latency_ms, marks),
            table("Subscriptions", columns, [_reader(each) for each in deliveries.readers]),
        ]
    )


def _reader(each: Reader) -> list[Cell | str]:
    latencies = (each.latency_p50_ms, each.latency_p95_ms, each.latency_p99_ms)
    return [
        *(name(each.topic), name(each.subscription), number(each.settled), number(each.errors)),
        number(each.repeated),
        *(number(value, None if value is None else milliseconds(value)) for value in latencies),
        number(each.depth),
    ]


def _backlog(deliveries: Deliveries | None, span: Span, marks: list[Mark]) -> Markup:
    if deliveries is None or not deliveries.depth:
        return absent("What is left to do is known once deliveries were taken in:", RUN)
    return lines(Heading("Published and not settled", "messages, by subscription"), span, deliveries.depth, marks)


def _errors(deliveries: Deliveries | None, span: Span, marks: list[Mark]) -> Markup:
    if deliveries is None:
        return absent("Errors are known once deliveries were taken in:", RUN)
    note = f"dead, expired or dropped, of all that was settled, {per(span.step_seconds)}"
    return lines(Heading("Error ratio", note, "percent"), span, [deliveries.error_ratio], marks)
