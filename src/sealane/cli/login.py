"""`sealane login`: from a user's name and password to a profile, also on a machine that does not know the node yet."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.connecting import CONNECT_SECONDS, run
from sealane.cli.group import EXIT_USAGE, fail
from sealane.cli.options import AsJson
from sealane.cli.output import examples, write_json
from sealane.errors import InvalidArgument, UntrustedNode

if TYPE_CHECKING:
    from sealane.client.profiles import Profile
    from sealane.client.remote.addresses import Nodes

login_command = typer.Typer()

PASSWORD_BYTES_MAX = 4_096
"""What is read of standard input, at most."""


@login_command.command(
    name="login",
    epilog=examples(
        "sealane login sealanes://broker.example:7070 --user anna",
        "sealane login sealanes://broker.example --user anna --ca ca.crt",
        "sealane login sealanes://10.0.0.5 --user ci --fingerprint 2a6c5972…338d --password-stdin < password.txt",
    ),
)
def login(
    node: Annotated[str, typer.Argument(metavar="URL", help="The node, such as sealanes://broker.example:7070.")],
    user: Annotated[str | None, typer.Option("--user", help="Who logs in; asked for if it is left out.")] = None,
    ca: Annotated[
        Path | None, typer.Option("--ca", help="The node's ca.crt, if you have it.", exists=True, dir_okay=False)
    ] = None,
    fingerprint: Annotated[
        str | None,
        typer.Option("--fingerprint", metavar="SHA256", help="Of the node's authority, as `sealane up` tells it."),
    ] = None,
    password_stdin: Annotated[
        bool, typer.Option("--password-stdin", help="Read the password from standard input.")
    ] = False,
    name: Annotated[str | None, typer.Option("--name", help="What the profile is called; default: the host.")] = None,
    as_json: AsJson = False,
) -> None:
    """Log in to a node with a user's password, and keep what is needed to come back as a profile.

    The first time, the fingerprint of the node's certificate authority is shown: compare it with what `sealane up` or
    `sealane ca show` says there. The password is not kept; the token that the node gives for it ends by itself.
    """
    from sealane.client.remote.addresses import parse_urls
    from sealane.client.user_profiles import UserProfiles

    if ca is not None and fingerprint is not None:
        raise InvalidArgument("--fingerprint", "cannot be given beside --ca, which tells more")
    nodes = parse_urls(node)
    if not nodes.tls:
        raise InvalidArgument("URL", "a password needs TLS: write sealanes:// instead of sealane://")
    profiles = UserProfiles()
    name = name or profile_name(nodes)
    _check_free(profiles, name)
    trusted = ca.read_text(encoding="utf-8") if ca is not None else _authority(nodes, fingerprint)
    user = user or typer.prompt("User", err=True)
    profile, ends = run(_token(nodes.url, trusted, user, _password(password_stdin), name))
    path = profiles.put(profile)
    if as_json:
        write_json({"name": name, "url": profile.url, "user": user, "expires": ends.isoformat(), "path": str(path)})
    else:
        default = ", the default" if profiles.default == name else ""
        typer.echo(f"logged in as {user} until {ends.astimezone():%Y-%m-%d %H:%M}: profile {name!r}{default}")


def profile_name(nodes: Nodes) -> str:
    """What a profile for these nodes is called if nobody says otherwise."""
    from sealane.client.remote.addresses import PORT_DEFAULT

    host, port = nodes.addresses[0]
    text = host if port == PORT_DEFAULT else f"{host}-{port}"
    return "".join(each if each.isalnum() or each in "._-" else "-" for each in text).lstrip(".-_") or "node"


def _check_free(profiles: Any, name: str) -> None:
    """A certificate or key that is kept under this name is not to be lost by logging in."""
    if name in profiles.names():
        there = profiles.get(name)
        if there.certificate is not None or there.api_key is not None:
            raise InvalidArgument("--name", f"profile {name!r} holds a {there.credential}; choose another name")


def _authority(nodes: Nodes, fingerprint: str | None) -> str:
    """The certificate of the node's authority: as known here, or as a person says that it is the right one."""
    from sealane.client.finding import matching_profile
    from sealane.client.remote.first_contact import authority_at

    known = matching_profile(nodes)
    if fingerprint is None and known is not None and known.ca is not None:
        return known.ca
    shown = run(authority_at(nodes))
    address = str(nodes.addresses[0])
    if fingerprint is not None:
        if shown.has_fingerprint(fingerprint):
            return shown.pem
        hint = "do not log in, unless you know why it is another one"
        raise UntrustedNode(address, f"its authority has the fingerprint {shown.fingerprint}", hint)
    typer.echo(f"The node at {address} is not known here. Its authority has the SHA-256 fingerprint", err=True)
    typer.echo(f"  {shown.fingerprint}", err=True)
    typer.echo("Compare it with what `sealane ca show` says on the node's machine.", err=True)
    if not sys.stdin.isatty():
        fail("nobody is there to compare: give --fingerprint or --ca", EXIT_USAGE)
    if not typer.confirm("Is it the same?", err=True):
        raise UntrustedNode(address, "its fingerprint is not the right one", "nothing was sent to it")
    return shown.pem


def _password(from_stdin: bool) -> str:
    if from_stdin:
        text = sys.stdin.buffer.readline(PASSWORD_BYTES_MAX).decode("utf-8").rstrip("\r\n")
    elif sys.stdin.isatty():
        text = typer.prompt("Password", hide_input=True, err=True)
    else:
        fail("nobody is there to type a password: give --password-stdin", EXIT_USAGE)
    if not text:
        raise InvalidArgument("password", "is empty")
    return text


async def _token(url: str, ca: str, user: str, password: str, name: str) -> tuple[Profile, datetime]:
    import sealane
    from sealane.client.profiles import Profile

    options: dict[str, Any] = {"ca": ca, "user": user, "password": password}
    async with sealane.connect(url, connect_timeout=CONNECT_SECONDS, **options) as lane:
        issued = await lane.administer("token.issue")
    ends = datetime.fromtimestamp(issued["expires_us"] / 1_000_000, UTC)
    return Profile(url, ca=ca, user=user, token=issued["token"], name=name), ends
