"""How every command fails: one clear line on standard error, and an exit code that a script can rely on."""

from __future__ import annotations

from contextvars import copy_context
from typing import Any, NoReturn

import typer
from typer.core import TyperGroup

from sealane.errors import (
    FilterError,
    Forbidden,
    InvalidArgument,
    InvalidName,
    InvalidSettings,
    SealaneError,
    Unauthenticated,
    UntrustedNode,
)

EXIT_FAILED = 1
"""What was asked could not be done, or found something wrong."""
EXIT_USAGE = 2
"""It was asked in a way that cannot be meant; the parser itself uses this one too."""
EXIT_CREDENTIAL = 3
"""The node does not know who is asking, or may not do it for them; or it is not known whether it is the node."""
EXIT_INTERRUPTED = 130
"""Ctrl-C, as shells number it."""

BAD_USAGE = (InvalidArgument, InvalidName, FilterError)
REFUSED_CREDENTIAL = (Unauthenticated, Forbidden, UntrustedNode)


class SealaneGroup(TyperGroup):
    """A group of commands that turns Sealane's errors, and those of files, into a line instead of a traceback."""

    def invoke(self, ctx: Any) -> Any:
        try:
            # What a command is told (`choosing.py`) holds for it alone: one program may run several.
            return copy_context().run(super().invoke, ctx)
        except BrokenPipeError:
            # Whoever read the output (`| head`) has had enough; the parser ends quietly.
            raise
        except KeyboardInterrupt:
            raise typer.Exit(EXIT_INTERRUPTED) from None
        except InvalidSettings as error:
            for problem in error.problems[:-1]:
                typer.echo(f"error: {problem}", err=True)
            fail(error.problems[-1], EXIT_USAGE)
        except (SealaneError, OSError) as error:
            fail("; ".join([str(error), *getattr(error, "__notes__", ())]), exit_code_of(error))


def exit_code_of(error: Exception) -> int:
    if isinstance(error, REFUSED_CREDENTIAL):
        return EXIT_CREDENTIAL
    return EXIT_USAGE if isinstance(error, BAD_USAGE) else EXIT_FAILED


def fail(problem: str, exit_code: int = EXIT_FAILED) -> NoReturn:
    """Say what is wrong, and end."""
    typer.echo(f"error: {' '.join(problem.split())}", err=True)
    raise typer.Exit(exit_code)
