"""The `sealane` command."""

from __future__ import annotations

from typing import Annotated

import typer

from sealane._version import __version__
from sealane.cli.later import Later, LaterGroup

COMMANDS = (
    Later("up", "sealane.cli.up:up", "Run a node until Ctrl-C or SIGTERM, and say where its doors are.", "Node"),
    Later("config", "sealane.cli.config:config", "Settings: what a node started here would run with, and why.", "Node"),
    Later(
        "log",
        "sealane.cli.log:log",
        "A data directory from outside: list, check, export, back up, restore. All but restore only read.",
        "Node",
    ),
)
"""In the order in which the help lists them; each module is loaded when its command is used."""


class Sealane(LaterGroup):
    table = COMMANDS


app = typer.Typer(
    name="sealane",
    cls=Sealane,
    no_args_is_help=True,
    # A traceback with local variables would show payloads and keys.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sealane {__version__}")
        raise typer.Exit


@app.callback()
def sealane(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and end.")
    ] = False,
) -> None:
    """Sealane: a message broker whose queues are tables."""
