"""`sealane ca …`: the node's own certificate authority."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sealane.cli.certificate_delivery import Delivery
from sealane.cli.certificate_shapes import (
    COLUMNS,
    authority_facts,
    certificate_facts,
    certificate_object,
    certificate_rows,
)
from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url, Yes
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json

if TYPE_CHECKING:
    from sealane.client import Lane

ca_commands = typer.Typer(
    cls=SealaneGroup,
    no_args_is_help=True,
    help="Certificates: issue, renew and revoke them by the node's own authority.",
)

KeyTypes = Literal["ecdsa-p384", "rsa-4096"]
States = Literal["valid", "expired", "revoked", "not-yet-valid"]
Reasons = Literal[
    "unspecified",
    "key-compromise",
    "affiliation-changed",
    "superseded",
    "cessation-of-operation",
    "privilege-withdrawn",
]

Certificate = Annotated[
    str, typer.Argument(metavar="CERTIFICATE", help="Whose or which: a name, a serial or a fingerprint.")
]
Name = Annotated[
    str, typer.Argument(metavar="NAME", help="The account's name, such as client001.example.com of domain example.com.")
]
Days = Annotated[
    float | None, typer.Option("--days", help="How long it is valid; a fraction of a day will do.", show_default=False)
]
Request = Annotated[
    Path | None,
    typer.Option("--csr", help="Sign this request (PEM): the private key stays where it is.", show_default=False),
]
Out = Annotated[
    Path | None,
    typer.Option(
        "--out", "-o", help="Where the files go. Default: here, unless there is a --profile-file.", show_default=False
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Write over files that are there.")]
ProfileFile = Annotated[
    Path | None,
    typer.Option("--profile-file", help="Write one file with all that another machine needs.", show_default=False),
]
ProfileUrl = Annotated[
    str | None,
    typer.Option("--profile-url", help="Where the other machine finds the node, if not where this one does."),
]
OfDomain = Annotated[str | None, typer.Option("--domain", help="Of this domain alone.", show_default=False)]


@ca_commands.command(
    epilog=examples(
        "sealane ca init",
        "sealane ca init --domain example.com",
        "sealane ca init --key-type rsa-4096",
    )
)
def init(
    domain: Annotated[
        str | None, typer.Option("--domain", help="An authority of this domain's own.", show_default=False)
    ] = None,
    key_type: Annotated[
        KeyTypes | None, typer.Option("--key-type", help="Default: what the settings say.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make the certificate authority, which `sealane up` does by itself, or one for a domain of its own."""
    made = _administer(url, data, "ca.init", domain=domain, key_type=key_type)
    if as_json:
        write_json(certificate_object(made))
        return
    show_facts(authority_facts(made))


@ca_commands.command(
    epilog=examples(
        "sealane ca issue client001.example.com --out certificates",
        "sealane ca issue client001.example.com --csr client001.csr",
        "sealane ca issue build.example.com --days 0.5 --role producer",
        "sealane ca issue laptop --profile-file laptop.profile --profile-url sealanes://10.0.0.5:7070",
        "sealane ca issue node2.example.com --server --host 10.0.0.6",
    )
)
def issue(
    name: Name,
    out: Out = None,
    csr: Request = None,
    days: Days = None,
    role: Annotated[
        list[str] | None, typer.Option("--role", help="What a new account is: member (default), producer, admin, …")
    ] = None,
    server: Annotated[bool, typer.Option("--server", help="For a server, not for an account.")] = False,
    host: Annotated[
        list[str] | None, typer.Option("--host", help="Of a server: another name or address of it.")
    ] = None,
    profile_file: ProfileFile = None,
    profile_url: ProfileUrl = None,
    force: Force = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Issue a certificate: NAME.crt, NAME.key (for you alone) and ca.crt. Its account is made if there is none."""
    delivery = Delivery(name, out, profile_file, profile_url, with_key=csr is None, force=force)
    delivery.prepare(url, data)
    usage = "server" if server else "client"
    wish = {"name": name, "usage": usage, "names": host or [], "roles": role, "days": days, "csr": _read(csr)}
    delivery.deliver(_administer(url, data, "ca.issue", **wish), as_json=as_json)


@ca_commands.command(
    epilog=examples(
        "sealane ca renew client001.example.com --out certificates --force",
        "sealane ca renew client001.example.com --csr client001.csr --force",
        "sealane ca renew 5f0c9a3e7b21d4680f9c1e2a3b4c5d6e7f801234 --early --revoke-old",
    )
)
def renew(
    certificate: Certificate,
    out: Out = None,
    csr: Request = None,
    days: Days = None,
    early: Annotated[bool, typer.Option("--early", help="Also if it is valid for long.")] = False,
    revoke_old: Annotated[
        bool, typer.Option("--revoke-old", help="The old one ends now; else it stays valid to its end.")
    ] = False,
    profile_file: ProfileFile = None,
    profile_url: ProfileUrl = None,
    force: Force = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Renew a certificate that ends soon: another one for the same name, for as long as the old one was for."""
    name = _administer(url, data, "ca.show", certificate=certificate)[-1]["name"]
    delivery = Delivery(name, out, profile_file, profile_url, with_key=csr is None, force=force)
    delivery.prepare(url, data)
    wish = {"certificate": certificate, "force": early, "revoke": revoke_old, "days": days, "csr": _read(csr)}
    delivery.deliver(_administer(url, data, "ca.renew", **wish), as_json=as_json)


@ca_commands.command(
    epilog=examples(
        "sealane ca revoke client001.example.com --reason key-compromise",
        "sealane ca revoke 5f0c9a3e7b21d4680f9c1e2a3b4c5d6e7f801234 --yes",
    )
)
def revoke(
    certificate: Certificate,
    reason: Annotated[Reasons, typer.Option("--reason", help="Why; the revocation list tells it.")] = "unspecified",
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Revoke a certificate, or all of a name, for good. Its connections are cut at once."""
    found = _administer(url, data, "ca.show", certificate=certificate)
    confirm(f"Revoke {_count(found)} of {found[0]['name']} for good?", yes=yes)
    revoked = _administer(url, data, "ca.revoke", certificate=certificate, reason=reason)
    if as_json:
        write_json([certificate_object(each) for each in revoked])
        return
    for each in revoked:
        typer.echo(f"certificate {each['serial']} of {each['name']} is revoked")


@ca_commands.command(
    name="list",
    epilog=examples(
        "sealane ca list",
        "sealane ca list --state valid --domain example.com",
        "sealane ca list --json | jq -r '.[].serial'",
    ),
)
def list_certificates(
    name: Annotated[str | None, typer.Option("--name", help="Of this name alone.", show_default=False)] = None,
    domain: OfDomain = None,
    state: Annotated[States | None, typer.Option("--state", help="In this state alone.", show_default=False)] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List the certificates that were issued."""

    async def all_pages(lane: Lane) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        after: str | None = ""
        while after is not None:
            page = await lane.administer("ca.list", name=name, domain=domain, state=state, after=after)
            found += page["certificates"]
            after = page["next"]
        return found

    _show_list(ask(url, data, all_pages, offline=True), as_json, "no certificates: `sealane ca issue NAME` makes one")


@ca_commands.command(
    epilog=examples(
        "sealane ca show",
        "sealane ca show --pem > ca.crt",
        "sealane ca show client001.example.com",
    )
)
def show(
    certificate: Annotated[
        str | None,
        typer.Argument(metavar="[CERTIFICATE]", help="A name, a serial or a fingerprint; without one the authorities."),
    ] = None,
    pem: Annotated[bool, typer.Option("--pem", help="The authorities' certificates, for ca.crt files.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show the authorities, or a certificate."""
    if pem and certificate is not None:
        raise typer.BadParameter("--pem is for the authorities; the node keeps no other certificates")
    found = _administer(url, data, "ca.show", certificate=certificate)
    if pem:
        typer.echo("".join(each["certificate"] for each in found), nl=False)
    elif as_json:
        write_json([certificate_object(each) for each in found])
    elif not found:
        typer.echo("no authority yet: `sealane ca init` makes it", err=True)
    for number, each in enumerate([] if pem or as_json else found):
        if number:
            typer.echo()
        show_facts(authority_facts(each) if certificate is None else certificate_facts(each))


@ca_commands.command(epilog=examples("sealane ca crl > ca.crl", "sealane ca crl --domain example.com"))
def crl(
    domain: Annotated[
        str | None, typer.Option("--domain", help="Of this domain's own authority.", show_default=False)
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Write the revocation list (PEM) to standard output. The node itself needs none: it knows what is revoked."""
    pem = _administer(url, data, "ca.crl", domain=domain)
    if as_json:
        write_json({"crl": pem})
    else:
        typer.echo(pem, nl=False)


@ca_commands.command(
    epilog=examples("sealane ca expiring", "sealane ca expiring --days 90 --json | jq -r '.[].name'"),
)
def expiring(
    days: Annotated[
        float | None, typer.Option("--days", min=0, help="Within so many days. Default: 30.", show_default=False)
    ] = None,
    domain: OfDomain = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List the certificates that end soon and were not renewed yet."""
    found = _administer(url, data, "ca.expiring", days=days, domain=domain)
    _show_list(found, as_json, "none ends soon")


def _administer(url: str | None, data: Path, command: str, **arguments: Any) -> Any:
    return ask(url, data, lambda lane: lane.administer(command, **arguments), offline=True)


def _read(csr: Path | None) -> str | None:
    return None if csr is None else csr.read_text(encoding="ascii", errors="replace")


def _show_list(found: list[dict[str, Any]], as_json: bool, empty: str) -> None:
    if as_json:
        write_json([certificate_object(each) for each in found])
        return
    show_table(COLUMNS, certificate_rows(found), empty=empty)


def _count(found: list[Any]) -> str:
    return "the certificate" if len(found) == 1 else f"all {len(found)} certificates"
