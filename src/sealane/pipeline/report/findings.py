"""Sections on what is to be looked at: anomalies, dead letters, and routes."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime

from sealane.pipeline.report.bars import bar
from sealane.pipeline.report.charts import legend
from sealane.pipeline.report.figures import Anomaly, DeadLetters, Figures, Routes
from sealane.pipeline.report.markup import Markup, element, joined
from sealane.pipeline.report.measures import expected, observed
from sealane.pipeline.report.numbers import count, length, milliseconds, moment, percent
from sealane.pipeline.report.tables import NONE, Cell, absent, command, name, number, table

RUN = "sealane pipeline run --once"


def anomalies(figures: Figures) -> Markup:
    if figures.anomalies is None:
        return absent("Nothing was looked at for anomalies yet. A run of the pipeline does it:", RUN)
    if not figures.anomalies:
        return absent("Nothing was out of the ordinary.")
    caption = "What was out of the ordinary, the last first"
    if figures.anomalies_in_all > len(figures.anomalies):
        caption += f"; {len(figures.anomalies)} of {figures.anomalies_in_all:,}"
    columns = ["began (UTC)", ">lasted", "topic", "subscription", "measure", ">observed", ">expected", ">score", "why"]
    return table(caption, columns, [_anomaly(each) for each in figures.anomalies])


def _anomaly(each: Anomaly) -> list[Cell | str]:
    seconds = (each.ended - each.began).total_seconds()
    return [
        Cell(moment(each.began), each.began.timestamp(), "moment"),
        number(seconds, length(seconds) if seconds else NONE),
        *(name(each.topic), name(each.subscription or NONE), Cell(each.measure)),
        number(each.observed, observed(each), style="strong"),
        number(each.expected_high, expected(each)),
        number(each.score, None if each.score is None else count(each.score)),
        Cell(each.contributed or ("a rule" if each.kind == "rule" else NONE), style="words"),
    ]


def dead_letters(figures: Figures) -> Markup:
    if figures.dead_letters is None:
        return absent("Dead letters are known once deliveries were taken in:", RUN)
    if not figures.dead_letters:
        return absent("No message died.")
    most = max(each.messages for each in figures.dead_letters)
    rows = [
        [
            Cell(joined([each.reason, element("small", each.cause) if each.cause else None]), style="words"),
            Cell(bar([("s5", each.messages, "")], most), style="drawn"),
            number(each.messages),
            *(name(each.topic), name(each.subscription)),
            Cell(moment(each.first), each.first.timestamp(), "moment"),
            Cell(moment(each.last), each.last.timestamp(), "moment"),
        ]
        for each in figures.dead_letters
    ]
    columns = ["reason and cause", "", ">messages", "topic", "subscription", "first (UTC)", "last (UTC)"]
    return joined([table("By reason, the most frequent first", columns, rows), _another_chance(figures.dead_letters)])


def _another_chance(letters: tuple[DeadLetters, ...]) -> Markup:
    """One command for each subscription: it drives all of its dead letters back, whatever they died of."""
    amounts: Counter[tuple[str, str, str]] = Counter()
    for each in letters:
        amounts[each.topic, each.subscription, each.redrive] += each.messages
    rows = [
        [name(topic), name(subscription), number(amount), Cell(command(redrive), style="given")]
        for (topic, subscription, redrive), amount in amounts.most_common()
    ]
    return table("To give them another chance", ["topic", "subscription", ">messages", "command"], rows)


def route_weights(routes: Routes | None) -> Markup:
    if routes is None:
        return absent(
            "No weights were learnt yet. A run of the pipeline does it, once nodes tell of their routes:", RUN
        )
    topics: dict[str, list[tuple[str, float]]] = {}
    nodes = sorted({each.node for each in routes.weights})
    styles = {node: f"s{index}" if index < 6 else "rest" for index, node in enumerate(nodes)}
    for each in routes.weights:
        topics.setdefault(each.topic, []).append((each.node, each.weight))
    shares = [
        [
            name("all topics" if topic == "*" else topic),
            Cell(bar([(styles[node], weight, f"{node}: {percent(weight)}") for node, weight in sorted(parts)], 1)),
        ]
        for topic, parts in sorted(topics.items())
    ]
    rows = [
        [
            *(name("all topics" if each.topic == "*" else each.topic), name(each.node)),
            number(each.weight, percent(each.weight)),
            number(each.expected_ms, None if each.expected_ms is None else milliseconds(each.expected_ms)),
            number(each.load, None if each.load is None else percent(each.load)),
            number(each.messages),
        ]
        for each in routes.weights
    ]
    when = f", made on {moment(routes.made)} UTC" if routes.made else ""
    hour = "" if routes.hour is None else f" for {_hour(routes.hour)}"
    return joined(
        [
            element("p", f"Version {routes.version:,}{hour}{when}."),
            legend((styles[node], node) for node in nodes),
            table("What each node gets", ["topic", ""], shares),
            table("Weights", ["topic", "node", ">weight", ">expected", ">load", ">messages"], rows),
        ]
    )


def _hour(hour: int) -> str:
    """Of the week, which begins on Monday; more than it has are hours since 1970."""
    if hour >= 168:
        return f"{moment(datetime.fromtimestamp(hour * 3600, UTC))} UTC"
    days = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
    return f"{days[hour // 24 % 7]} {hour % 24:02}:00 UTC"
