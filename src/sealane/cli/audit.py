"""`sealane audit …`: who came in, was refused, and changed what."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import AsyncIterator
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import EXIT_FAILED, SealaneGroup
from sealane.cli.moments import parse_moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_table, write_json, write_json_line
from sealane.cli.progress import progress_bar
from sealane.security.audit.entries import Outcome

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.security.audit.chain import Finding

LAST_DEFAULT = 100
"""Entries that `show` tells unless it is asked for more: a few screens."""
FOLLOWER = "audit-follow"
"""The subscription of `follow`; it keeps no position."""
AUDIT_LOG = "_system/audit"

audit_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="The audit log: who came in, was refused, and changed what."
)

Event = Annotated[
    str | None,
    typer.Option("--event", metavar="EVENT", help="Only this one, such as `topic.create`, or all of `topic`."),
]
Who = Annotated[str | None, typer.Option("--principal", metavar="NAME", help="Only what this principal did.")]
Ended = Annotated[Outcome | None, typer.Option("--outcome", metavar="ok|refused", help="Only what ended so.")]
Since = Annotated[
    str | None,
    typer.Option("--since", metavar="WHEN", help="How long ago at most (`2h`), or a moment (`2026-01-31T12:00`)."),
]


@audit_commands.command(
    epilog=examples(
        "sealane audit show --since 1h",
        "sealane audit show --event authentication --outcome refused",
        "sealane audit show --principal anna --last 0",
        "sealane audit show --last 0 --json > audit.jsonl",
    )
)
def show(
    since: Since = None,
    event: Event = None,
    principal: Who = None,
    outcome: Ended = None,
    last: Annotated[
        int, typer.Option("--last", "-n", min=0, help="So many of the newest at most; 0: all of them.")
    ] = LAST_DEFAULT,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line, as `audit verify` reads it.")] = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show entries of the audit log, the newest last."""
    wish = {"since_us": _moment_us(since), "event": event, "principal": principal, "outcome": outcome}

    async def work(lane: Lane) -> list[dict[str, Any]]:
        kept: deque[dict[str, Any]] = deque(maxlen=last or None)
        async for entry in _entries(lane, wish):
            kept.append(entry)
        return list(kept)

    # A log can be looked at where no node runs; a directory that is not there is not made for it.
    found: list[dict[str, Any]] = ask(url, data, work, offline=data.is_dir())
    if as_json:
        for entry in found:
            write_json_line(entry)
        return
    rows = [_row(entry) for entry in found]
    columns = [">number", "time", "event", "outcome", "principal", "from", "resource", "details"]
    show_table(columns, rows, empty="no such entries")


async def _entries(lane: Lane, wish: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
    at = 0
    while True:
        answer = await lane.administer("audit.read", start=at, **wish)
        for entry in answer["entries"]:
            yield entry
        if answer["next"] >= answer["end"]:
            return
        at = answer["next"]


def _row(entry: dict[str, Any]) -> tuple[object, ...]:
    moment = datetime.fromtimestamp(entry["time_us"] / 1e6, UTC).strftime("%Y-%m-%d %H:%M:%S")
    details = " ".join(f"{name}={value}" for name, value in entry["details"].items())
    origin = " ".join(part for part in (entry["address"], entry["door"]) if part)
    told = (entry["event"], entry["outcome"], entry["principal"], origin, entry["resource"], details)
    return entry["number"], moment, *told


def _moment_us(text: str | None) -> int | None:
    if text is None:
        return None
    return round(parse_moment(text).timestamp() * 1e6)


@audit_commands.command(
    epilog=examples(
        "sealane audit follow | jq -c 'select(.outcome == \"refused\")'",
        "sealane audit follow --from 4711 --event authentication",
    )
)
def follow(
    number: Annotated[
        int | None, typer.Option("--from", metavar="NUMBER", min=0, help="Begin with this entry; default: the next.")
    ] = None,
    event: Event = None,
    principal: Who = None,
    outcome: Ended = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Write each entry as a line of JSON when it comes, for ever: what a SIEM reads.

    Whoever has read up to an entry goes on with `--from` its number and one.
    """
    from sealane.node.administration.audit import is_of_kind
    from sealane.security.audit.entries import from_line

    async def work(lane: Lane) -> None:
        start: Any = "latest" if number is None else {0: number}
        async for message in lane.consume(AUDIT_LOG, FOLLOWER, mode="broadcast", start=start, auto_ack=True):
            entry = from_line(message.payload)
            if (
                (event is None or is_of_kind(entry.event, event))
                and principal in (None, entry.principal)
                and outcome in (None, entry.outcome)
            ):
                typer.echo(message.payload.decode())

    ask(url, data, work)


@audit_commands.command(
    epilog=examples("sealane audit verify", "sealane audit verify audit.jsonl", "sealane audit verify --json")
)
def verify(
    file: Annotated[
        Path | None,
        typer.Argument(
            metavar="[FILE]",
            exists=True,
            dir_okay=False,
            allow_dash=True,
            help="Lines that `audit show --last 0 --json` or `audit follow` wrote; `-`: standard input.",
        ),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Find entries that were changed, removed, inserted or moved; exit code 1 if there are any.

    Without FILE it is the node's own log, whose beginning and end are known. A file is checked in itself: what it
    begins and ends with may be anything.
    """
    report = _of_node(url, data) if file is None else _of_file(file)
    if as_json:
        write_json(report)
    else:
        for finding in report["findings"]:
            typer.echo(f"{finding['kind']}: {finding['text']}", err=True)
        if not report["findings"]:
            span = "" if report["first"] is None else f", {report['first']} to {report['last']}"
            typer.echo(f"{report['entries']:,} entries{span}: all are as they were written")
    if report["findings"]:
        raise typer.Exit(EXIT_FAILED)


def _of_node(url: str | None, data: Path) -> dict[str, Any]:
    with progress_bar("reading", "entries") as told:
        report: dict[str, Any] = ask(
            url, data, lambda lane: lane.administer("audit.verify", progress=told), offline=data.is_dir()
        )
    return report


def _of_file(file: Path) -> dict[str, Any]:
    from sealane.errors import CorruptData
    from sealane.security.audit.chain import Chain
    from sealane.security.audit.entries import from_line

    chain = Chain()
    with nullcontext(sys.stdin.buffer) if str(file) == "-" else file.open("rb") as lines:
        for place, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                chain.add(from_line(line))
            except CorruptData:
                number = chain.links[-1].number + 1 if chain.links else 0
                chain.add_unreadable(number, f"line {place} is not an entry (entry {number} is expected there)")
    numbers = [link.number for link in chain.links]
    return {
        "entries": len(numbers),
        "first": numbers[0] if numbers else None,
        "last": numbers[-1] if numbers else None,
        "findings": [_plain(finding) for finding in chain.findings()],
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {"kind": finding.kind, "number": finding.number, "text": finding.text}
