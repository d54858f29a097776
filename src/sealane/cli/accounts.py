"""`sealane account …`: whom a node knows, by whatever credentials they come."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url
from sealane.cli.output import examples, show_facts, show_table, write_json

account_commands = typer.Typer(
    cls=SealaneGroup,
    no_args_is_help=True,
    help="Whom the node knows: make, list, look at, disable, enable, give roles.",
)

Name = Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account's name.")]


@account_commands.command(
    epilog=examples("sealane account create legacy", "sealane account create legacy.shop --domain shop --role producer")
)
def create(
    name: Name,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="A role that it has; again for more. Default: member.")
    ] = None,
    domain: Annotated[
        str | None, typer.Option("--domain", help="Its home. Default: what follows the first dot of its name.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make an account without credentials, such as one that a door stands for. Credentials can follow."""
    asked: dict[str, Any] = {"name": name, "domain": domain, "roles": role}
    done = ask(url, data, lambda lane: lane.administer("account.create", **asked), offline=True)
    if as_json:
        write_json(done)
        return
    typer.echo(f"account {name} of {done['domain']} is there, with the roles {', '.join(done['roles']) or 'of nobody'}")


@account_commands.command(name="list", epilog=examples("sealane account list", "sealane account list --json"))
def list_accounts(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List accounts with their roles."""
    found = ask(url, data, lambda lane: lane.administer("account.list"), offline=True)
    if as_json:
        write_json(found)
        return
    show_table(
        ["account", "domain", "roles", "state", "password", ">keys"],
        [
            (
                each["name"],
                each["domain"],
                ", ".join(each["roles"]),
                _state(each),
                "yes" if each["user"] else "no",
                len(each["keys"]),
            )
            for each in found
        ],
        empty="no accounts yet: `sealane account create`, `ca issue`, `key create` and `user create` make them",
    )


@account_commands.command(epilog=examples("sealane account show billing", "sealane account show billing --json"))
def show(name: Name, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Show an account: its roles, its credentials, and what it may do."""
    found = ask(url, data, lambda lane: lane.administer("account.show", name=name), offline=True)
    if as_json:
        write_json(found)
        return
    show_facts(
        [
            ("account", found["name"]),
            ("domain", found["domain"]),
            ("roles", ", ".join(found["roles"]) or "none"),
            ("state", _state(found)),
            ("since", moment(found["created_us"])),
            ("password", "yes" if found["user"] else "no"),
            ("API keys", ", ".join(found["keys"]) or "none"),
        ]
    )
    show_table(
        ["by", "may", "what"],
        [(each["subject"], each["action"], each["pattern"]) for each in found["grants"]],
        empty="it may do nothing: `sealane grant add` or `sealane account roles` changes that",
    )


@account_commands.command(epilog=examples("sealane account disable billing"))
def disable(name: Name, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Let nobody in by any credential of this account. Who is connected is cut off at once."""
    done = ask(url, data, lambda lane: lane.administer("account.disable", name=name), offline=True)
    if as_json:
        write_json(done)
        return
    typer.echo(f"account {name} is disabled; {done['connections']} connections were cut off")


@account_commands.command(epilog=examples("sealane account enable billing"))
def enable(name: Name, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Let an account in again."""
    done = ask(url, data, lambda lane: lane.administer("account.enable", name=name), offline=True)
    if as_json:
        write_json(done)
        return
    typer.echo(f"account {name} is enabled")


@account_commands.command(
    epilog=examples("sealane account roles billing producer consumer", "sealane account roles billing --none")
)
def roles(
    name: Name,
    given: Annotated[list[str] | None, typer.Argument(metavar="ROLE", help="All the roles it has from now on.")] = None,
    none: Annotated[bool, typer.Option("--none", help="No role: it may do what it is granted by name.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Give an account these roles instead of those that it has. Who is connected comes in anew."""
    if bool(given) == none:
        raise typer.BadParameter("give the roles that it has from now on, or --none")
    done = ask(url, data, lambda lane: lane.administer("account.roles", name=name, roles=given or []), offline=True)
    if as_json:
        write_json(done)
        return
    typer.echo(f"account {name} has {'the roles ' + ', '.join(done['roles']) if done['roles'] else 'no role'} now")


def _state(account: dict[str, Any]) -> str:
    return "disabled" if account["disabled"] else "active"
