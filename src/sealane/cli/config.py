"""`sealane config …`: what a node started here would run with."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from sealane.cli.group import SealaneGroup
from sealane.cli.up import Config, Data, Settings, own_flags

if TYPE_CHECKING:
    from sealane.server.loading import Loaded

config = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Settings: what a node started here would run with, and why."
)


@config.callback()
def group() -> None:
    """Keeps `show` a command of its own, though it is the only one."""


@config.command()
def show(
    file: Config = None,
    data: Data = None,
    pairs: Settings = None,
    changed: Annotated[bool, typer.Option("--changed", help="Only what is not the default.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")] = False,
) -> None:
    """Show every setting with its value and where that was written: default, file and line, variable or flag.

    Values are shown as they may be written. docs/settings.md says what each is for.

    \b
    Examples:
      sealane config show --changed
      sealane config show --config /etc/sealane.yaml --json | jq '.settings["doors.native.port"].value'
      SEALANE_LOG__LEVEL=debug sealane config show
    """  # noqa: D301 - the parser wants the character itself
    from sealane.server.loading import load

    loaded = load(config=file, pairs=pairs or (), flags=own_flags(data=data))
    if as_json:
        typer.echo(json.dumps(_as_json(loaded, changed), indent=2))
    else:
        _show_table(loaded, changed)


def _as_json(loaded: Loaded, changed: bool) -> dict[str, Any]:
    from sealane.server.schema import settings

    return {
        "config": str(loaded.config) if loaded.config else None,
        "settings": {
            entry.name: {
                "value": entry.value,
                "default": settings()[entry.name].default,
                "source": entry.origin.kind,
                "place": entry.origin.place or None,
            }
            for entry in loaded.entries
            if not changed or entry.value != settings()[entry.name].default
        },
    }


def _show_table(loaded: Loaded, changed: bool) -> None:
    from sealane.server.schema import settings
    from sealane.server.values import shown

    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("setting", "value", "source"):
        table.add_column(column, no_wrap=True)
    for entry in loaded.entries:
        setting = settings()[entry.name]
        is_default = entry.origin.kind == "default"
        if changed and entry.value == setting.default:
            continue
        table.add_row(entry.name, shown(setting, entry.value), str(entry.origin), style="dim" if is_default else "")
    console = Console(soft_wrap=True, highlight=False, markup=False)
    if table.row_count:
        # A table that the terminal wraps is still whole; one that is cut to fit it is not.
        console.width = max(console.width, 200)
        console.print(table)
    else:
        console.print("every setting has its default")
