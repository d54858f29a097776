"""What the page says first: in one sentence, whether all is well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from sealane.pipeline.report.figures import Figures, Proven
from sealane.pipeline.report.numbers import moment, several

Level = Literal["good", "bad", "open"]

RECONCILE = "sealane pipeline reconcile"


@dataclass(frozen=True, slots=True)
class Verdict:
    level: Level
    sentence: str
    detail: str


def verdict(figures: Figures) -> Verdict:
    """Only a reconciliation proves that nothing is missing; without one nobody can tell."""
    if figures.span is None:
        return Verdict("open", "There is nothing to tell yet", "No message has come in: sealane pipeline run --once")
    proven = figures.proven
    if proven is None:
        return Verdict("open", "Nobody has proven yet that every message was settled once", f"Do it with: {RECONCILE}")
    if any(proven.counts.values()):
        return Verdict("bad", _problems(proven.counts), "They are named below, under Reconciliation.")
    return _holding(proven)


def _problems(counts: dict[str, int]) -> str:
    words = {
        "missing": ("message is missing", "messages are missing"),
        "duplicated": ("message is there twice", "messages are there twice"),
        "out of order": ("message was handed out too late", "messages were handed out too late"),
    }
    found = [several(amount, *words.get(name, (name, name))) for name, amount in counts.items() if amount]
    return f"{', '.join(found[:-1])} and {found[-1]}" if len(found) > 1 else found[0]


def _holding(proven: Proven) -> Verdict:
    in_flight = sum(row.in_flight for row in proven.balance)
    dead = sum(row.dead_lettered for row in proven.balance)
    sentence = "Every message was settled once"
    if in_flight:
        sentence += ", or is under way"
    detail = f"Proven for {several(len(proven.balance), 'subscription')}"
    detail += f" on {moment(proven.made)} UTC." if proven.made else "."
    if in_flight:
        detail += f" {several(in_flight, 'delivery is', 'deliveries are')} in flight."
    if dead:
        detail += f" {several(dead, 'delivery', 'deliveries')} ended as a dead letter, which counts as settled."
    return Verdict("good", sentence, detail)
