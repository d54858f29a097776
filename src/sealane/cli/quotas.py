"""`sealane quota …`: how much principals and domains may do a second."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_table, write_json
from sealane.server.quantities import SIZES, quantity

quota_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Quotas: how much principals and domains may do a second."
)

NO_LIMIT = "none"
_SIZES_FOLDED = {name.lower(): size for name, size in SIZES.items()}


def _count(text: str) -> int:
    """A number of messages or requests; `none` is no limit."""
    if text == NO_LIMIT:
        return 0
    digits = text.replace(",", "").replace("_", "")
    if not digits.isascii() or not digits.isdigit() or int(digits) < 1:
        raise typer.BadParameter(f"{text!r} is no limit; write a number from 1, or {NO_LIMIT}")
    return int(digits)


def _size(text: str) -> int:
    """The same in bytes: `1MB`, `64KiB`."""
    found = quantity(text, _SIZES_FOLDED, fold=True) if text.split() == [text] else None
    return _count(text) if found is None else max(1, int(found))


Scope = Annotated[Literal["principal", "domain"], typer.Argument(help="Whose quota: one principal's, or a domain's.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="Its name.")]
Messages = Annotated[
    int | None,
    typer.Option("--messages", parser=_count, metavar="N|none", help="Messages that it may publish a second."),
]
Bytes = Annotated[
    int | None,
    typer.Option("--bytes", parser=_size, metavar="SIZE|none", help="Bytes that it may publish a second: 1MB, 64KiB."),
]
Requests = Annotated[
    int | None,
    typer.Option("--requests", parser=_count, metavar="N|none", help="Requests a second; a published batch is one."),
]
Connections = Annotated[
    int | None,
    typer.Option("--connections", parser=_count, metavar="N|none", help="Connections at a time; of a principal."),
]


@quota_commands.command(
    name="set",
    epilog=examples(
        "sealane quota set principal billing --messages 1000 --bytes 1MB",
        "sealane quota set domain shop --requests 500",
        "sealane quota set principal nightly --messages none",
    ),
)
def set_quota(
    scope: Scope,
    name: Name,
    messages: Messages = None,
    bytes_: Bytes = None,
    requests: Requests = None,
    connections: Connections = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Set a quota, for those who are connected too; what is not named stays.

    A client that comes too soon is told how long to wait; Sealane's own waits by itself, and loses nothing.
    """
    given = {
        "messages_per_second": messages,
        "bytes_per_second": bytes_,
        "requests_per_second": requests,
        "connections_max": connections,
    }
    wanted: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not wanted:
        raise typer.BadParameter("nothing to set: give at least one of --messages, --bytes, --requests, --connections")
    found = ask(url, data, lambda lane: lane.administer("quota.set", scope=scope, name=name, **wanted), offline=True)
    _show([found], as_json)


@quota_commands.command(epilog=examples("sealane quota remove principal billing"))
def remove(scope: Scope, name: Name, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Forget what was set for it: what the settings say holds again."""
    ask(url, data, lambda lane: lane.administer("quota.remove", scope=scope, name=name), offline=True)
    typer.echo(f"{scope} {name} has what the settings say")


@quota_commands.command(name="list", epilog=examples("sealane quota list", "sealane quota list --json"))
def list_quotas(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List the quotas that were set by name; `security.quotas.*` in the settings holds for the others."""
    _show(ask(url, data, lambda lane: lane.administer("quota.list"), offline=True), as_json)


@quota_commands.command(epilog=examples("sealane quota show", "sealane quota show principal billing --json"))
def show(
    scope: Annotated[
        Literal["principal", "domain"] | None, typer.Argument(help="Whose quota; without it, your own.")
    ] = None,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name.")] = "",
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show what holds for a principal or a domain, and what is left of it now."""
    if scope is not None and not name:
        raise typer.BadParameter(f"which {scope}? give its name")
    asked: dict[str, Any] = {} if scope is None else {"scope": scope, "name": name}
    _show(ask(url, data, lambda lane: lane.administer("quota.show", **asked), offline=data.is_dir()), as_json)


def _show(found: list[dict[str, Any]], as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    show_table(
        ["whose", "name", ">messages/s", ">bytes/s", ">requests/s", ">connections"],
        [
            (
                each["scope"],
                each["name"],
                *(_cell(each, what) for what in ("messages", "bytes", "requests")),
                _connections(each),
            )
            for each in found
        ],
        empty="no quota was set by name: `sealane quota set --help` tells how",
    )


def _cell(each: dict[str, Any], what: str) -> str:
    """The limit, and how much of it can be used at once now if that was less lately."""
    limit = each["holds"].get(what)
    if limit is None:
        return NO_LIMIT
    left = each["left"].get(what)
    return f"{limit:,}" if left is None else f"{limit:,} ({max(0, int(left)):,} left)"


def _connections(each: dict[str, Any]) -> str:
    if each["connections"] is None:
        return ""
    limit = each["connections_max"]
    return f"{each['connections']:,} of {'any' if limit is None else format(limit, ',')}"
