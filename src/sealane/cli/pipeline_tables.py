"""`sealane pipeline sql`: the tables answer."""

from __future__ import annotations

from typing import Annotated

import typer

from sealane.cli.options import DEFAULT_DATA, AsJson, Data
from sealane.cli.output import show_table, write_json
from sealane.cli.pipeline_options import LakePath, Master, open_spark, pipeline_settings


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
