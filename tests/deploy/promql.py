"""What expressions of Prometheus ask for: their metrics, and the labels that they use of each."""

from __future__ import annotations

import re
from collections import defaultdict

import promql_parser
from promql_parser import AggModifierType, AggregateExpr, Expr, VectorSelector

INTERVAL = "$__rate_interval"
"""What Grafana replaces by a duration. Its other variables stand for regular expressions."""


def parse(text: str) -> Expr:
    """Raises `ValueError` with what is wrong."""
    found: Expr = promql_parser.parse(re.sub(r"\$\w+", ".*", text.replace(INTERVAL, "5m")))
    return found


def asked_for(text: str) -> dict[str, set[str]]:
    """The metrics of an expression, each with the labels that are matched, or that it is grouped by."""
    found: dict[str, set[str]] = defaultdict(set)
    groups: list[set[str]] = []

    def enter(each: Expr) -> None:
        if isinstance(each, AggregateExpr):
            by = each.modifier is not None and each.modifier.type == AggModifierType.By
            groups.append(set(each.modifier.labels) if by and each.modifier else set())
        elif isinstance(each, VectorSelector):
            matched = {matcher.name for matcher in each.matchers.matchers}
            found[str(each.name)] |= matched.union(*groups)

    def leave(each: Expr) -> None:
        if isinstance(each, AggregateExpr):
            groups.pop()

    promql_parser.walk(parse(text), enter, leave)
    return dict(found)
