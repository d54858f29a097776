"""`sealane pipeline export`: the lake's tables for tools that read another format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data
from sealane.cli.output import show_table, write_json
from sealane.cli.pipeline_options import LakePath, lake_path


def export(
    delta: Annotated[Path, typer.Option("--delta", metavar="DIRECTORY", help="Where the Delta tables are.")],
    as_json: AsJson = False,
    lake: LakePath = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Bring Delta tables to what the lake's tables have now, each by one commit. What they have already is not copied.

    Files are linked where lake and directory are on one file system. No Spark is needed. The pipeline does not run
    meanwhile: `sealane pipeline run --delta` does the same after each cycle.
    """
    from sealane.pipeline.lake.delta import check_delta, mirror_tables
    from sealane.pipeline.lake.holding import held
    from sealane.pipeline.lake.tables import Lake

    check_delta()
    found = Lake(lake_path(lake, data))
    with held(found.root):
        done = mirror_tables(found, delta)
    if as_json:
        write_json([dataclasses.asdict(each) for each in done])
        return
    show_table(
        ["table", ">rows", ">version", ">files added", ">removed"],
        [(each.table, f"{each.rows:,}", each.version, each.files_added, each.files_removed) for each in done],
        empty="no tables yet: `sealane pipeline run --once` makes them",
    )
