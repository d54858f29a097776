"""Commands whose code is loaded when they are used: `sealane --help` and completion stay quick."""

from __future__ import annotations

from importlib import import_module
from typing import Any, ClassVar, NamedTuple

import typer
from typer.core import TyperCommand

from sealane.cli.choosing import offer_profile
from sealane.cli.group import SealaneGroup


class Later(NamedTuple):
    """A command that the list of commands shows before its module is loaded."""

    name: str
    home: str
    """`module:attribute` of a `typer.Typer`; one with a single command is that command."""
    summary: str
    """The first sentence of its help."""
    panel: str
    """Under which heading it is listed."""

    def load(self) -> Any:
        module, attribute = self.home.split(":")
        found = getattr(import_module(module), attribute)
        # Completion is installed for the program, not for one of its commands.
        found._add_completion = False
        command = typer.main.get_command(found)
        command.name = self.name
        offer_profile(command)
        return command


class LaterGroup(SealaneGroup):
    """A group that knows of its commands by a table."""

    table: ClassVar[tuple[Later, ...]] = ()

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        listed = {
            each.name: TyperCommand(each.name, help=each.summary, rich_help_panel=each.panel) for each in self.table
        }
        self.commands = {**listed, **self.commands}

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, command, rest = super().resolve_command(ctx, args)
        for each in self.table:
            if each.name == name:
                return name, each.load(), rest
        return name, command, rest
