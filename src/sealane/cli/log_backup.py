"""`sealane log backup` and `sealane log restore`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from sealane.cli.group import EXIT_FAILED
from sealane.cli.progress import progress_bar
from sealane.engine.backup_report import BackupReport, Progress
from sealane.engine.local import RestoreReport, backup_directory, restore
from sealane.errors import DataDirectoryInUse, StorageError, Unavailable
from sealane.security.at_rest.keys import MASTER_KEY_FILE

AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]


def back_up(
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The data directory.")],
    out: Annotated[Path, typer.Argument(metavar="OUT", help="The backup: a directory that does not exist yet.")],
    no_key: Annotated[
        bool, typer.Option("--no-key", help="Leave the master key out; keep it elsewhere, or the backup is useless.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Copy a data directory, consistent and checked. A node that runs there makes the copy itself, and goes on serving.

    Ends with 1 when something in DATA is damaged; the backup is made all the same, and what is damaged is named.

    \b
    Examples:
      sealane log backup sealane-data /backup/monday
      sealane log backup /var/lib/sealane /mnt/offsite/monday --no-key
      sealane log verify /backup/monday
    """  # noqa: D301 - the parser wants the character itself
    with progress_bar("backing up", "bytes") as progress:
        try:
            report = backup_directory(data, out, include_key=not no_key, progress=progress)
        except DataDirectoryInUse as held:
            report = backup_through_node(data, out, include_key=not no_key, progress=progress, held=held)
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        typer.echo(_summary(report) + f" are in {report.target}")
        if not report.key_included:
            typer.echo(f"{MASTER_KEY_FILE} was left out: without it the backup cannot be read", err=True)
    _end_with(report.damaged)


def restore_backup(
    backup: Annotated[Path, typer.Argument(metavar="BACKUP", help="What `sealane log backup` has made.")],
    data: Annotated[Path, typer.Argument(metavar="DATA", help="The data directory to make: new, or empty.")],
    as_json: AsJson = False,
) -> None:
    """Make a data directory from a backup, after checking every file of it. Start a node there afterwards.

    \b
    Examples:
      sealane log restore /backup/monday sealane-data
      sealane up --data sealane-data
    """  # noqa: D301 - as above
    with progress_bar("restoring", "bytes") as progress:
        report = restore(backup, data, progress=progress)
    if as_json:
        typer.echo(json.dumps(_as_json(report), indent=2))
    else:
        typer.echo(_summary(report) + f" were restored to {report.data}")
    if report.key_missing:
        typer.echo(
            f"the backup was made without its key: put it at {data / MASTER_KEY_FILE} before the node starts", err=True
        )
    _end_with(report.damaged)


def backup_through_node(
    data: Path, out: Path, *, include_key: bool, progress: Progress, held: DataDirectoryInUse
) -> BackupReport:
    """Ask the node that holds the directory to make the backup."""
    from sealane.cli.connecting import ask, node_of

    try:
        url = node_of(data)
    except Unavailable:
        problem = f"{str(data)!r} is in use by process {held.pid}, which is no node: stop it, then make the backup"
        raise StorageError(problem) from held
    target = str(out.absolute())
    return ask(url, data, lambda lane: lane.backup(target, include_key=include_key, progress=progress))


def _summary(report: BackupReport | RestoreReport) -> str:
    topics = {(partition.domain, partition.topic) for partition in report.partitions}
    return f"{report.messages:,} messages of {len(topics):,} topics ({report.bytes:,} bytes in {report.files:,} files)"


def _as_json(report: BackupReport | RestoreReport) -> dict[str, Any]:
    return {**msgspec.to_builtins(report), "messages": report.messages}


def _end_with(damaged: tuple[str, ...]) -> None:
    for problem in damaged:
        typer.echo(f"damaged: {problem}; see `sealane log verify`", err=True)
    if damaged:
        raise typer.Exit(EXIT_FAILED)
