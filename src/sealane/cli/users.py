"""`sealane user …`: people who come in by a password."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import EXIT_USAGE, SealaneGroup, fail
from sealane.cli.keys import Domain, Roles
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url, Yes
from sealane.cli.output import confirm, examples, show_table, write_json

user_commands = typer.Typer(cls=SealaneGroup, no_args_is_help=True, help="People who come in by a password.")

PASSWORD_BYTES_READ = 8_192
"""Of standard input: more than any password has."""

Name = Annotated[str, typer.Argument(metavar="NAME", help="The user's name, which is the account's too.")]


def read_password(prompt: str = "Password", *, again: bool = True) -> str:
    """From a terminal without showing it, else the first line of standard input; never from an argument, which other
    users of the machine could see.
    """
    if sys.stdin.isatty():
        given: str = typer.prompt(prompt, hide_input=True, confirmation_prompt=again, err=True)
        return given
    line = sys.stdin.readline(PASSWORD_BYTES_READ).rstrip("\r\n")
    if not line:
        fail("the password is expected on standard input: `sealane user … < file`", EXIT_USAGE)
    return line


@user_commands.command(
    epilog=examples(
        "sealane user create anna",
        "sealane user create anna --role manager --role member --domain shop",
        "pass show anna | sealane user create anna",
    )
)
def create(
    name: Name,
    roles: Roles = None,
    domain: Domain = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make a user. The password is asked for, or read from standard input."""
    password = read_password()
    made = ask(
        url,
        data,
        lambda lane: lane.administer("user.create", name=name, password=password, roles=roles, domain=domain),
        offline=True,
    )
    if as_json:
        write_json(made)
        return
    typer.echo(f"user {name} is there, in domain {made['domain']}, as {', '.join(made['roles']) or 'nobody'}")


@user_commands.command(name="list", epilog=examples("sealane user list", "sealane user list --json"))
def list_users(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List users, with who is locked out."""
    found = ask(url, data, lambda lane: lane.administer("user.list"), offline=True)
    if as_json:
        write_json(found)
        return
    show_table(
        ["user", "domain", "roles", "state", "password of"],
        [
            (each["name"], each["domain"], ", ".join(each["roles"]), _state(each), moment(each["changed_us"]))
            for each in found
        ],
        empty="no users yet: `sealane user create anna` makes one",
    )


@user_commands.command(
    epilog=examples(
        "sealane user password anna", "sealane user password anna --own", "sealane user password anna < file"
    )
)
def password(
    name: Name,
    own: Annotated[bool, typer.Option("--own", help="It is yours: the one until now is asked for first.")] = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Set a user's password. Who is connected by the old one has to log in again.

    From standard input, with --own, the password until now is the first line and the new one the second.
    """
    current = read_password("Password until now", again=False) if own else None
    chosen = read_password("New password")
    ask(
        url,
        data,
        lambda lane: lane.administer("user.password", name=name, password=chosen, current=current),
        offline=True,
    )
    typer.echo(f"the password of {name} is changed")


@user_commands.command(epilog=examples("sealane user lock anna"))
def lock(name: Name, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Let a user in no more, until `unlock`. Who is connected is cut off; API keys of the account stay."""
    ask(url, data, lambda lane: lane.administer("user.lock", name=name), offline=True)
    typer.echo(f"user {name} is locked")


@user_commands.command(epilog=examples("sealane user unlock anna"))
def unlock(name: Name, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Let a user in again: after `lock`, or after too many wrong passwords."""
    ask(url, data, lambda lane: lane.administer("user.unlock", name=name), offline=True)
    typer.echo(f"user {name} may log in")


@user_commands.command(epilog=examples("sealane user remove anna", "sealane user remove anna --yes"))
def remove(name: Name, yes: Yes = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Take a user's password away. The account stays, with its keys and certificates."""
    confirm(f"Remove user {name}?", yes=yes)
    done = ask(url, data, lambda lane: lane.administer("user.remove", name=name), offline=True)
    typer.echo(f"user {name} is removed")
    if done["keys"]:
        keys = ", ".join(done["keys"])
        typer.echo(f"its account has API keys still ({keys}): `sealane account disable {name}` ends them", err=True)


@user_commands.command(epilog=examples("sealane user rotate-tokens"))
def rotate_tokens(url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Sign the tokens of users by a new key. Tokens that are there stay valid until they end."""
    done = ask(url, data, lambda lane: lane.administer("token.rotate"), offline=True)
    typer.echo(f"tokens are signed by key {done['id']} from now on")


def _state(user: dict[str, Any]) -> str:
    if user["disabled"]:
        return "disabled"
    if user["locked"]:
        return "locked" if user["locked_until_us"] is None else f"locked until {moment(user['locked_until_us'])}"
    return "active"
