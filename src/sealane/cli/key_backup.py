"""`sealane key backup` and `sealane key restore`: the master key, on the node's own machine.

They work on the files of the data directory, whether a node runs there or not, so that the key never travels.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.connecting import DEFAULT_DATA
from sealane.cli.group import EXIT_USAGE, fail
from sealane.cli.options import AsJson
from sealane.cli.output import write_json

Data = Annotated[Path, typer.Option("--data", envvar="SEALANE_DATA", help="The data directory, on this machine.")]
FromStdin = Annotated[
    bool, typer.Option("--passphrase-stdin", help="Read the passphrase from the first line of standard input.")
]


def back_up(
    target: Annotated[Path, typer.Argument(metavar="FILE", help="The backup: a file that does not exist yet.")],
    passphrase: Annotated[bool, typer.Option("--passphrase", help="Seal it by a passphrase, which is asked for.")] = (
        False
    ),
    from_stdin: FromStdin = False,
    as_json: AsJson = False,
    data: Data = DEFAULT_DATA,
) -> None:
    """Keep the master key elsewhere: whoever loses it has lost every stored message.

    The file is readable by its owner alone. Without a passphrase it opens everything that the data directory holds, so
    keep it apart from the data; with one (Argon2id, AES-256-GCM) it is of use only together with that. A backup is
    over when the master key is rotated: make another one then.
    """
    from sealane.engine.local.key_files import back_up_key

    words = _passphrase(from_stdin, asked=passphrase, twice=True)
    back_up_key(data, target, words, made_us=time.time_ns() // 1_000)
    if as_json:
        write_json({"file": str(target), "passphrase": words is not None})
        return
    typer.echo(f"the master key of {data} is in {target}" + (", sealed by the passphrase" if words else ""))
    if words is None:
        typer.echo("whoever has this file can read the data: keep it apart from it, where nobody else gets", err=True)


def restore(
    backup: Annotated[Path, typer.Argument(metavar="FILE", help="What `sealane key backup` has made.")],
    from_stdin: FromStdin = False,
    as_json: AsJson = False,
    data: Data = DEFAULT_DATA,
) -> None:
    """Put the master key back. Refused if it is not the one that seals the data there, or if that one is in its place.

    A wrong key file that is found in its place is not thrown away but renamed.
    """
    from sealane.engine.local.key_files import needs_passphrase, restore_key

    words = _passphrase(from_stdin, asked=needs_passphrase(backup), twice=False)
    aside = restore_key(data, backup, words)
    if as_json:
        write_json({"data": str(data), "put_aside": None if aside is None else str(aside)})
        return
    typer.echo(f"the master key of {data} is back in its place")
    if aside is not None:
        typer.echo(f"the wrong key that was there is now {aside}", err=True)


def _passphrase(from_stdin: bool, *, asked: bool, twice: bool) -> str | None:
    """Never an argument: other users of the machine read those."""
    if from_stdin:
        words = sys.stdin.readline().rstrip("\r\n")
        if not words:
            fail("there is no passphrase on standard input", EXIT_USAGE)
        return words
    if not asked:
        return None
    if not sys.stdin.isatty():
        fail("the passphrase cannot be asked for without a terminal: give --passphrase-stdin", EXIT_USAGE)
    answer: str = typer.prompt("Passphrase", hide_input=True, confirmation_prompt=twice, err=True)
    return answer
