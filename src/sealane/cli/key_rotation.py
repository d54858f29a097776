"""`sealane key rotate` and `sealane key status`: the keys that seal what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.durations import duration
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import show_table, write_json
from sealane.cli.progress import progress_bar

if TYPE_CHECKING:
    from sealane.client import Lane

LOOK_SECONDS = 0.5
"""How often the node is asked how far it is."""

Told = Callable[[int, int | None], None]


def rotate(
    domain: Annotated[str | None, typer.Option("--domain", help="The domain whose key is exchanged.")] = None,
    all_domains: Annotated[bool, typer.Option("--all", help="All domains, the node's own records too.")] = False,
    master: Annotated[bool, typer.Option("--master", help="The master key, which wraps the domains' keys.")] = False,
    wait: Annotated[
        bool, typer.Option("--wait/--no-wait", help="End when everything is sealed anew, or leave that to the node.")
    ] = True,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Exchange a key for a new one, while everything is served.

    What is written from now on is sealed by the new key. What older keys have sealed is sealed anew in the background,
    and then they are destroyed; Ctrl-C ends the waiting, not the work, and a restart goes on with it.
    """
    if [domain is not None, all_domains, master].count(True) != 1:
        raise typer.BadParameter("say which key: one of --domain, --all and --master")
    if master:
        answer = ask(url, data, lambda lane: lane.administer("key.rotate_master"), offline=True)
        if as_json:
            write_json(answer)
        else:
            typer.echo("another master key wraps all keys now")
            typer.echo("backups of the old one do not open them: make a new one with `sealane key backup`", err=True)
        return
    with progress_bar("sealing anew:", "bytes") as told:
        answer = ask(url, data, lambda lane: _rotate(lane, domain, told if wait else None), offline=True)
    if as_json:
        write_json(answer)
        return
    domains = ", ".join(answer["rotated"]) or "no domain"
    typer.echo(
        f"{domains}: sealed by the new key, and older ones are destroyed"
        if wait
        else f"{domains}: a new key seals what comes; `sealane key status` tells how far the rest is"
    )


def status(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Show the keys that seal what is stored: by domain, how old they are, and what is being sealed anew."""
    found = ask(url, data, lambda lane: lane.administer("key.status"), offline=True)
    if as_json:
        write_json(found)
        return
    show_table(
        ["domain", ">key", "age", ">older keys"],
        [
            (
                each["domain"],
                each["key"],
                "not known" if each["age_seconds"] is None else duration(int(each["age_seconds"])),
                each["older_keys"],
            )
            for each in found["domains"]
        ],
        empty="no keys yet: the first sealed topic of a domain makes one",
    )
    if found["resealing"]:
        done = found["bytes_total"] - found["bytes_left"]
        typer.echo(f"being sealed anew: {done:,} of {found['bytes_total']:,} bytes are done")


async def _rotate(lane: Lane, domain: str | None, told: Told | None) -> dict[str, Any]:
    asked = {"all": True} if domain is None else {"domain": domain}
    try:
        answer: dict[str, Any] = await lane.administer("key.rotate", **asked)
        if told is not None:
            await _resealed(lane, told)
    except asyncio.CancelledError:
        # The node may have been told, and not have answered yet.
        typer.echo("what has begun goes on in the background; `sealane key status` tells how far it is", err=True)
        raise
    return {**answer, "resealed": told is not None}


async def _resealed(lane: Lane, told: Told) -> None:
    while True:
        found = await lane.administer("key.status")
        if not found["resealing"]:
            return
        total = found["bytes_total"]
        told(total - found["bytes_left"], total or None)
        await asyncio.sleep(LOOK_SECONDS)
