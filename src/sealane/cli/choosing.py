"""`--profile`, on every command that takes `--url`: how to reach the node, and who is asking."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Annotated, Any

import typer

CONNECTION_PANEL = "Connection"

_chosen: ContextVar[str | None] = ContextVar("profile", default=None)


def chosen_profile() -> str | None:
    """What the command that runs was given; None if nothing."""
    return _chosen.get()


def _choose(value: str | None) -> str | None:
    # Called for every command that has the option, also when it is not used.
    _chosen.set(value)
    return value


def offer_profile(command: Any) -> None:
    """Add the option to a command, or to each command of a group, where it asks a node: once, for all of them."""
    for each in getattr(command, "commands", {}).values():
        offer_profile(each)
    names = [param.name for param in command.params]
    if "url" in names and "profile" not in names:
        command.params.insert(names.index("url") + 1, _option())


@cache
def _option() -> Any:
    template = typer.Typer(add_completion=False)

    @template.command()
    def any_command(
        profile: Annotated[
            str | None,
            typer.Option(
                "--profile",
                metavar="NAME",
                envvar="SEALANE_PROFILE",
                expose_value=False,
                callback=_choose,
                show_default=False,
                rich_help_panel=CONNECTION_PANEL,
                help="A profile of yours, or the file of one: where the node is, and who is asking.",
            ),
        ] = None,
    ) -> None: ...

    return typer.main.get_command(template).params[0]
