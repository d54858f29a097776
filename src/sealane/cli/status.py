"""`sealane status`: one look at a node."""

from __future__ import annotations

from datetime import UTC, datetime

import typer

from sealane.cli.connecting import ask
from sealane.cli.durations import duration, rate, size
from sealane.cli.group import EXIT_FAILED
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_facts, show_table, write_json
from sealane.cli.status_rows import STATUS_COLUMNS, connections_text, status_rows, storage_text

status_command = typer.Typer()


@status_command.command(
    name="status",
    epilog=examples(
        "sealane status",
        "sealane status --url sealane://10.0.0.5:7070",
        "sealane status --json | jq '.topics[] | {name, depth}'",
    ),
)
def status(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Show how a node is doing. Ends with 1 when it does not serve everything."""
    import msgspec

    found = ask(url, data, lambda lane: lane.status())
    if as_json:
        write_json(msgspec.to_builtins(found))
    else:
        started = datetime.fromtimestamp(found.started, UTC).astimezone()
        show_facts(
            [
                ("node", f"Sealane {found.version}, {'ready' if found.ready else 'NOT READY'}"),
                *(("problem", problem) for problem in found.problems),
                ("up", f"{duration(found.uptime_seconds)}, since {started:%Y-%m-%d %H:%M:%S}"),
                ("storage", storage_text(found)),
                ("memory", "unknown" if found.memory_bytes is None else size(found.memory_bytes)),
                ("connections", connections_text(found)),
                ("published", f"{found.published_total:,} since the start, {rate(found.published_per_second)} lately"),
                ("acknowledged", f"{found.acked_total:,} since the start, {rate(found.acked_per_second)} lately"),
                ("leased", f"{found.leased:,} messages, to {found.consumers:,} consumers"),
                *(("crashed", f"{task}, {times:,} times") for task, times in found.crashes.items()),
                ("topics", f"{found.topics_total:,}, with {found.messages_total:,} messages"),
            ]
        )
        show_table(STATUS_COLUMNS, status_rows(found), empty="no topics yet: `sealane publish orders hello` makes one")
    if not found.ready:
        raise typer.Exit(EXIT_FAILED)
