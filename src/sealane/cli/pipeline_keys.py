"""`sealane pipeline reseal` and `forget`: what the lake has of people, and under which keys."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url, Yes
from sealane.cli.output import confirm, write_json
from sealane.cli.pipeline_audit import NoAudit, audit_lane
from sealane.cli.pipeline_options import DryRun, Keys, LakePath, existing_lake, pipeline_settings
from sealane.cli.progress import progress_bar

if TYPE_CHECKING:
    from sealane.pipeline.bulk.rewriting import BulkReport


def reseal(
    dry_run: DryRun = False,
    no_audit: NoAudit = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    keys: Keys = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make a new key for the lake's bodies, seal all of them by it, and give the older keys up.

    One that was stopped goes on when it is called again, with the key that it had made. The pipeline does not run
    meanwhile.
    """
    from sealane.pipeline.bulk.auditing import Job, audited
    from sealane.pipeline.bulk.resealing import count_sealed, drop_unneeded
    from sealane.pipeline.bulk.resealing import reseal as do_reseal
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.secrets.keeping import keys_of, keys_path

    settings = pipeline_settings(lake, data, url, keys=keys)
    found = existing_lake(settings)
    if dry_run:
        bodies, files = count_sealed(found)
        if as_json:
            write_json({"found": bodies, "files": files, "dry_run": True})
        else:
            typer.echo(f"{bodies:,} bodies would be sealed anew, in {files:,} files")
        return
    with (
        held(settings.lake),
        audit_lane(settings, no_audit=no_audit) as lane,
        progress_bar("sealing", "files") as progress,
    ):
        lake_keys = keys_of(found, keys_path(settings))
        with audited(lane, Job("reseal", found.root)) as said:
            # More than one: an earlier try was stopped before it could give the older ones up.
            if len(lake_keys.numbers) == 1:
                lake_keys.rotate()
            report = do_reseal(found, lake_keys, told=said.telling(progress))
            dropped = drop_unneeded(found, lake_keys)
            said.ends_with(rows=report.changed, files=report.files_changed, key=lake_keys.newest)
    if as_json:
        write_json({**dataclasses.asdict(report), "key": lake_keys.newest, "given_up": dropped, "dry_run": False})
        return
    done = f"{report.found:,} bodies were sealed by key {lake_keys.newest}, in {report.files:,} files"
    typer.echo(done + _given_up(dropped))


def _given_up(keys: list[int]) -> str:
    return f"; key {', '.join(map(str, keys))} is given up" if keys else ""


def forget(
    number: Annotated[
        str | None, typer.Option("--number", help="A phone number, in any writing with its country, or as it was sent.")
    ] = None,
    key: Annotated[str | None, typer.Option("--key", help="A message key.")] = None,
    domain: Annotated[str | None, typer.Option("--domain", help="In one domain. Default: in all of them.")] = None,
    dry_run: DryRun = False,
    no_audit: NoAudit = False,
    yes: Yes = False,
    as_json: AsJson = False,
    lake: LakePath = None,
    keys: Keys = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Take what messages say of a phone number, or under a key, out of the lake. It cannot be undone.

    The messages stay, without key, headers and body, so that what was proved of them still holds. Another run finds
    nothing more. Topics are not touched: they forget by their retention.
    """
    from sealane.pipeline.bulk.auditing import Job, audited
    from sealane.pipeline.bulk.forgetting import forget as do_forget
    from sealane.pipeline.bulk.forgetting import subject_of
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.secrets.keeping import keys_of, keys_path

    if (number is None) == (key is None):
        raise typer.BadParameter("name a phone number by --number, or a message key by --key")
    settings = pipeline_settings(lake, data, url, keys=keys)
    found = existing_lake(settings)
    if not dry_run:
        confirm(f"Take all that is about {number or key} out of {settings.lake}? It cannot be undone.", yes=yes)
    whom = _Whom(number, None if key is None else key.encode(), domain)
    with (
        held(settings.lake),
        audit_lane(settings, no_audit=no_audit or dry_run) as lane,
        progress_bar("forgetting", "files") as progress,
    ):
        lake_keys = keys_of(found, keys_path(settings))
        subject = subject_of(lake_keys, **whom._asdict())
        # The audit log is kept for long, and read by many: whom it is about is a hash there.
        with audited(lane, Job("forget", found.root, {"subject": subject, "domain": domain})) as said:
            report = do_forget(found, lake_keys, **whom._asdict(), dry_run=dry_run, told=said.telling(progress))
            said.ends_with(rows=report.changed, files=report.files_changed, closed=report.closed)
    if as_json:
        write_json({**dataclasses.asdict(report), "subject": subject, "dry_run": dry_run})
    else:
        typer.echo(_forgotten(report, dry_run))


class _Whom(NamedTuple):
    number: str | None
    key: bytes | None
    domain: str | None


def _forgotten(report: BulkReport, dry_run: bool) -> str:
    done = "would be forgotten" if dry_run else "were forgotten"
    closed = f"; {report.closed:,} bodies are sealed end to end, and nobody here can tell" if report.closed else ""
    return f"{report.found:,} rows {done}, of {report.rows:,} in {report.files:,} files{closed}"
