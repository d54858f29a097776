"""How every command fails: one clear line on standard error, and an exit code that a script can rely on."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from sealane.errors import SealaneError

EXIT_FAILED = 1
"""What was asked could not be done, or found something wrong. Bad usage is 2, which the parser itself uses."""


class SealaneGroup(TyperGroup):
    """A group of commands that turns Sealane's errors, and those of files, into a line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read the output (`| head`) has had enough; the parser ends quietly.
            raise
        except (SealaneError, OSError) as error:
            fail(str(error))


def fail(problem: str) -> None:
    """Say what is wrong, and end."""
    typer.echo(f"error: {' '.join(problem.split())}", err=True)
    raise typer.Exit(EXIT_FAILED)
