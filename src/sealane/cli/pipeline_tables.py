"""`sealane pipeline sql` and `report`: the tables answer."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data
from sealane.cli.output import show_table, write_json
from sealane.cli.pipeline_options import LakePath, Master, Since, Until, open_spark, pipeline_settings


def sql(
    text: Annotated[str, typer.Argument(metavar="SQL", help="Spark SQL; each table is known by its name.")],
    lake: LakePath = None,
    master: Master = "local[*]",
    as_json: AsJson = False,
    data: Data = DEFAULT_DATA,
) -> None:
    """Ask the tables: messages, history, deliveries, and what is computed from them, traffic and dead_letters."""
    from sealane.pipeline.asking import ask_tables

    settings = pipeline_settings(lake, data, None, master=master)
    columns, rows = ask_tables(open_spark(settings), settings.lake, text)
    if as_json:
        write_json([dict(zip(columns, row, strict=True)) for row in rows])
        return
    show_table(columns, rows, empty="no rows")


def report(
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="Where the page goes.")] = Path("report.html"),
    since: Since = None,
    until: Until = None,
    lake: LakePath = None,
    master: Master = "local[*]",
    data: Data = DEFAULT_DATA,
) -> None:
    """Write one page on traffic, latency, anomalies, reconciliation, dead letters and routes, for any browser."""
    from sealane.pipeline.lake.tables import Lake
    from sealane.pipeline.report.gathering import gather
    from sealane.pipeline.report.page import render, write_report
    from sealane.pipeline.report.verdict import verdict

    settings = pipeline_settings(lake, data, None, master=master)
    figures = gather(open_spark(settings), Lake(settings.lake), since=since, until=until)
    write_report(out.absolute(), render(figures))
    typer.echo(f"{verdict(figures).sentence}; see {out}")
