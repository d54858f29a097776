"""The proof that nothing was lost, of many messages at once."""

from __future__ import annotations

from pathlib import Path

from bench.spark import sessions
from bench.work import Amounts, Part, Reading, Work


def _reconciliation(path: Path, amounts: Amounts) -> Reading:
    from bench.reconciliation import reconciled

    found = reconciled(path, **amounts)
    return Reading({name: found[name] for name in ("seconds", "processor", "named")}, foreign=[found["foreign"]])


RECONCILIATION = (
    Work(
        "reconciliation",
        "lake",
        (
            Part(
                "seconds",
                "{messages:,} messages are reconciled on two cores, and those that were planted are named",
                "s",
                180,
                True,
            ),
            Part("processor", "the same, processor time", "s", less_is_better=True),
            Part("named", "lost, duplicated and out of order: named, and no other", "messages"),
        ),
        _reconciliation,
        {"messages": 10_000_000},
        {"messages": 200_000},
        rounds_max=1,
        seconds=120,
        quick_seconds=40,
        in_quick=False,
        missing=sessions.missing,
    ),
)
