"""The last proof, kept beside the tables, so that a report can say what it has found."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sealane.pipeline.lake.tables import Lake
from sealane.pipeline.proving import Proof
from sealane.pipeline.report.figures import ROWS_SHOWN, Balance, Problem, Proven
from sealane.whole_files import PRIVATE, replace_file

AMOUNTS = ("published", "acked", "dead_lettered", "expired", "dropped", "passed_over", "in_flight", "missing")
"""In the order in which `Balance` has them."""


def keep_proof(lake: Lake, proof: Proof, *, made: datetime) -> None:
    """Instead of the one before it."""
    found = {
        "made": made.isoformat(),
        "balance": proof.balance,
        "problems": proof.problems[:ROWS_SHOWN],
        "counts": _counts(proof),
    }
    replace_file(_path(lake), json.dumps(found).encode(), PRIVATE)


def last_proof(lake: Lake) -> Proven | None:
    """What was kept last, if anything was."""
    path = _path(lake)
    if not path.is_file():
        return None
    found = json.loads(path.read_bytes())
    made = datetime.fromisoformat(found["made"]).astimezone(UTC)
    return _proven(found["balance"], found["problems"], found["counts"], made)


def proven_by(proof: Proof, *, made: datetime | None = None) -> Proven:
    """As the page says it: partitions of a subscription are summed up."""
    return _proven(proof.balance, proof.problems[:ROWS_SHOWN], _counts(proof), made)


def _counts(proof: Proof) -> dict[str, int]:
    return dict(Counter(str(row["problem"]) for row in proof.problems))


def _proven(
    balance: list[dict[str, Any]], problems: list[dict[str, Any]], counts: dict[str, int], made: datetime | None
) -> Proven:
    sums: dict[tuple[str, str], Counter[str]] = {}
    for row in balance:
        reader = (f"{row['domain']}/{row['topic']}", str(row["subscription"]))
        sums.setdefault(reader, Counter()).update({name: int(row[name] or 0) for name in AMOUNTS})
    rows = tuple(Balance(*reader, *(found[name] for name in AMOUNTS)) for reader, found in sorted(sums.items()))
    return Proven(made, rows, tuple(_problem(row) for row in problems), counts)


def _problem(row: dict[str, Any]) -> Problem:
    return Problem(
        row["problem"],
        f"{row['domain']}/{row['topic']}",
        int(row["partition"]),
        int(row["offset"]),
        row["id"] or "unknown",
        row["subscription"] or "any",
        row["detail"],
    )


def _path(lake: Lake) -> Path:
    return lake.root / "state" / "proof.json"
