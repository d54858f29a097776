"""`sealane pipeline reconcile`: every message was settled once, or these were not."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import show_table, write_json
from sealane.cli.pipeline_options import (
    Keys,
    LakePath,
    Master,
    Since,
    Topics,
    Until,
    open_spark,
    pipeline_settings,
)

EXIT_PROBLEMS = {"missing": 10, "duplicated": 11, "out of order": 12}
EXIT_SEVERAL = 13
"""How it ends when messages break it: by which problem, or by several."""
BALANCE = ("published", "acked", "dead_lettered", "expired", "dropped", "passed_over", "in_flight", "missing")
PROBLEMS_SHOWN = 100
"""All of them are in the JSON."""


def reconcile(
    topics: Topics = "*/*",
    since: Since = None,
    until: Until = None,
    lake: LakePath = None,
    keys: Keys = None,
    master: Master = "local[*]",
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Take in what there is, and prove that every message was settled once and in order, or name those that break it.

    With --since and --until that is proved of what was created in that time, whatever became of it since.
    Ends with 0 if it holds, 10 for missing messages, 11 for duplicated ones, 12 for some out of order, 13 for several.
    """
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.proving import prove
    from sealane.pipeline.report.proofs import keep_proof

    settings = pipeline_settings(lake, data, url, topics=topics, master=master, keys=keys)
    with held(settings.lake):
        proof = prove(open_spark(settings), settings, since=since, until=until)
        if since is None and until is None:  # A report tells of a proof of everything, or of none.
            keep_proof(Lake(settings.lake), proof, made=datetime.now(UTC))
    if as_json:
        write_json({"holds": not proof.problems, "balance": proof.balance, "problems": proof.problems})
    else:
        columns = ["topic", ">partition", "subscription", *(f">{name.replace('_', ' ')}" for name in BALANCE)]
        show_table(columns, [_balance_row(row) for row in proof.balance], empty="no subscription has had anything yet")
        show_table(
            ["problem", "topic", ">partition", ">offset", "id", "subscription", "what"],
            [_problem_row(row) for row in proof.problems[:PROBLEMS_SHOWN]],
            empty="every message that was published is settled once and in order, or under way",
            title=f"{len(proof.problems):,} messages break it" if proof.problems else None,
        )
    kinds = {row["problem"] for row in proof.problems}
    if kinds:
        raise typer.Exit(EXIT_PROBLEMS[kinds.pop()] if len(kinds) == 1 else EXIT_SEVERAL)


def _balance_row(row: dict[str, Any]) -> list[object]:
    counts = (f"{row[name]:,}" for name in BALANCE)
    return [f"{row['domain']}/{row['topic']}", row["partition"], row["subscription"], *counts]


def _problem_row(row: dict[str, Any]) -> list[object]:
    place = f"{row['domain']}/{row['topic']}"
    known = (row["id"] or "unknown", row["subscription"] or "any", row["detail"])
    return [row["problem"], place, row["partition"], row["offset"], *known]
