"""`sealane key destroy`: a domain's keys, and with them all that it has stored."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import EXIT_USAGE, fail
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import write_json


def destroy(
    domain: Annotated[str, typer.Option("--domain", help="The domain whose data is to become unreadable.")],
    confirmed: Annotated[
        str | None,
        typer.Option("--yes-destroy", metavar="DOMAIN", help="The domain once more, instead of being asked for it."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Destroy all keys of a domain: what it has stored can never be read again, whatever copies of files exist.

    Its topics are removed and their consumers told. Only a backup of the data directory that was made before has the
    keys in it. There is no way back. Whoever uses the domain afterwards begins anew, under a new key.
    """
    if confirmed is None:
        confirmed = _asked(domain)
    if confirmed != domain:
        fail(f"{confirmed!r} is not {domain!r}: nothing was destroyed", EXIT_USAGE)
    answer = ask(
        url, data, lambda lane: lane.administer("key.destroy", domain=domain, confirmed=confirmed), offline=True
    )
    if as_json:
        write_json(answer)
        return
    typer.echo(f"the keys of {domain} are destroyed, and {answer['topics']:,} topics with them")
    typer.echo("backups of the data directory that were made before still have them: destroy those too", err=True)


def _asked(domain: str) -> str:
    if not sys.stdin.isatty():
        fail("nobody is there to answer: give --yes-destroy and the domain's name to go on", EXIT_USAGE)
    typer.echo(f"This makes all stored messages of {domain} unreadable, for good.", err=True)
    answer: str = typer.prompt("Type the domain's name to destroy it", err=True)
    return answer
