"""`sealane log …`: a data directory from outside. All but `restore` only read, also while a node runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from sealane.cli.data_directory import DataDirectory
from sealane.cli.group import EXIT_FAILED, SealaneGroup
from sealane.cli.log_backup import back_up, restore_backup
from sealane.cli.log_export import FORMATS, STANDARD_OUTPUT, Request, export
from sealane.cli.log_inspect import describe, records, show, show_records
from sealane.cli.log_verify import verify
from sealane.cli.progress import progress_bar
from sealane.errors import InvalidArgument
from sealane.message import split_topic

log = typer.Typer(
    cls=SealaneGroup,
    no_args_is_help=True,
    help="A data directory from outside: list, check, export, back up, restore. All but restore only read.",
)
log.command(name="backup")(back_up)
log.command(name="restore")(restore_backup)

_TABLE_COLUMNS_MIN = 120
DEFAULT_DATA = Path("sealane-data")

Directory = Annotated[Path | None, typer.Argument(metavar="[DIR]", help="The data directory. Default: that of --data.")]
Data = Annotated[Path, typer.Option("--data", envvar="SEALANE_DATA", help="The data directory.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]


@log.command()
def inspect(
    directory: Directory = None,
    data: Data = DEFAULT_DATA,
    records_too: Annotated[bool, typer.Option("--records", help="List every record as well.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the topics, partitions, offsets and files of a data directory. Needs no key.

    \b
    Examples:
      sealane log inspect
      sealane log inspect /var/lib/sealane --json | jq '.topics[].topic'
      sealane log inspect --records | grep orders
    """  # noqa: D301 - the parser wants the character itself
    console = Console(soft_wrap=True)
    # Narrower than this, a table is harder to read than one that the terminal wraps.
    console.width = max(console.width, _TABLE_COLUMNS_MIN)
    with DataDirectory.look(directory or data) as view:
        description = describe(view)
        if as_json:
            listed = {"records": list(records(view))} if records_too else {}
            typer.echo(json.dumps({**description, **listed}, indent=2))
            return
        show(description, console)
        if records_too:
            show_records(records(view), console)


@log.command(name="verify")
def check(directory: Directory = None, data: Data = DEFAULT_DATA, as_json: AsJson = False) -> None:
    """Check every checksum and, with the master key, the seal of every entry.

    Ends with 1 when something is damaged, and names file, position, partition and offsets.

    \b
    Examples:
      sealane log verify
      sealane log verify /backup/data --json
    """  # noqa: D301 - as above
    with progress_bar("verifying", "bytes") as progress:
        verdict = verify(directory or data, progress)
    if as_json:
        typer.echo(json.dumps(verdict.as_json(), indent=2))
    else:
        for damage in verdict.damage:
            typer.echo(f"damaged: {damage}")
        if not verdict.tags_checked:
            typer.echo("the master key is not here: checksums were checked, seals were not", err=True)
        typer.echo(
            f"{verdict.entries:,} entries in {verdict.files:,} files, {verdict.bytes:,} bytes: "
            + (f"{len(verdict.damage):,} damaged" if verdict.damage else "all sound")
        )
    if verdict.damage:
        raise typer.Exit(EXIT_FAILED)


@log.command(name="export")
def export_topic(
    names: Annotated[list[str], typer.Argument(metavar="[DIR] TOPIC", help="The topic: `name` or `domain/name`.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The file to write; - for JSON lines on standard output.")],
    data: Data = DEFAULT_DATA,
    format: Annotated[
        str | None, typer.Option("--format", help=f"{', '.join(FORMATS)}. Default: by the file's ending.")
    ] = None,
    partition: Annotated[int | None, typer.Option("--partition", min=0, help="Only this partition.")] = None,
    start: Annotated[int, typer.Option("--from", min=0, help="The first offset.")] = 0,
    stop: Annotated[int | None, typer.Option("--to", min=0, help="The offset to stop before.")] = None,
) -> None:
    """Write a topic's messages, sealed or not, to a file that other tools open. Adds partition and offset.

    \b
    Examples:
      sealane log export orders --out orders.parquet
      sealane log export /backup/data shop/carts -o carts.arrow --partition 0
      sealane log export orders --from 1000 --to 2000 --out - | jq .payload
    """  # noqa: D301 - as above
    if len(names) > 2:
        raise typer.BadParameter(f"expected [DIR] TOPIC, got {len(names)} names")
    if stop is not None and stop < start:
        raise typer.BadParameter(f"--to {stop} comes before --from {start}")
    domain, topic = split_topic(names[-1])
    request = Request(
        directory=Path(names[0]) if len(names) == 2 else data,
        domain=domain,
        topic=topic,
        out=out,
        format=_format(format, out),
        partition=partition,
        start=start,
        stop=stop,
    )
    try:
        with progress_bar("exporting", "messages") as progress:
            exported = export(request, progress)
    except InvalidArgument as error:
        raise typer.BadParameter(str(error)) from None
    if exported.skipped:
        typer.echo(f"{exported.skipped:,} messages are damaged and were left out; see `sealane log verify`", err=True)
    typer.echo(f"{exported.messages:,} messages", err=True)
    if exported.skipped:
        raise typer.Exit(EXIT_FAILED)


def _format(wanted: str | None, out: Path) -> str:
    chosen = wanted or ("jsonl" if out == STANDARD_OUTPUT else out.suffix.removeprefix("."))
    if chosen not in FORMATS:
        raise typer.BadParameter(f"format {chosen!r} is not known; choose one of {', '.join(FORMATS)} with --format")
    if out == STANDARD_OUTPUT and chosen != "jsonl":
        raise typer.BadParameter(f"{chosen} needs a file; standard output takes jsonl")
    return chosen
