"""`sealane recipient …`: keys that messages are sealed for, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.key_files import read_passphrase, read_public_key, write_key_pair
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Url, Yes
from sealane.cli.output import confirm, examples, show_table, write_json

recipient_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Keys that messages are sealed for, end to end."
)

KeyTypes = Literal["x25519", "rsa-2048", "rsa-3072", "rsa-4096"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="The recipient: the name of an account.")]


@recipient_commands.command(
    epilog=examples(
        "sealane recipient keygen billing --out keys",
        "sealane recipient keygen billing --type rsa-3072 --passphrase-file secret.txt",
    )
)
def keygen(
    name: Name,
    out: Annotated[Path, typer.Option("--out", "-o", file_okay=False, help="Where the two files go.")] = Path(),
    key_type: Annotated[KeyTypes, typer.Option("--type", help="x25519 is the fastest, and small.")] = "x25519",
    passphrase_file: Annotated[
        Path | None,
        typer.Option("--passphrase-file", help="Protect the private key by the passphrase in this file's first line."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a key pair, here and without a node: `NAME.key` is for you alone, `NAME.pub` for everyone.

    What is sealed for a key opens with its private half alone: back it up.
    """
    from sealane.security.accounts import check_account_name
    from sealane.security.envelopes import PrivateKey

    check_account_name(name)
    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    private = PrivateKey.generate(key_type)
    secret, public = write_key_pair(out, name, private, passphrase)
    if as_json:
        write_json({"private": str(secret), "public": str(public), "fingerprint": private.public.fingerprint})
        return
    typer.echo(f"{secret}: the private key; back it up, without it nothing that is sealed for it opens")
    typer.echo(f"{public}: the public key, {private.public.fingerprint}")
    typer.echo(f"senders find it after: sealane recipient register {name} --public-key {public}", err=True)


@recipient_commands.command(
    epilog=examples(
        "sealane recipient register billing --public-key keys/billing.pub",
        "sealane recipient register billing --public-key new.pub --comment 'from May on'",
    )
)
def register(
    name: Name,
    public_key: Annotated[Path, typer.Option("--public-key", "-k", help="The public key, as PEM.")],
    comment: Annotated[str, typer.Option("--comment", help="For people who look at the list.")] = "",
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Let senders find a public key under its recipient's name: your own, or as an administrator anyone's.

    A recipient may have several: messages are sealed for all of them, so that keys can be changed without a gap.
    """
    key = read_public_key(public_key)
    made = ask(url, data, lambda lane: lane.register_key(key, name, comment=comment), offline=True)
    if as_json:
        write_json(made)
        return
    typer.echo(f"{made['name']} can be sealed for: {made['algorithm']} {made['fingerprint']}")


@recipient_commands.command(
    name="list", epilog=examples("sealane recipient list", "sealane recipient list --json | jq '.[].name'")
)
def list_recipients(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List the recipients and their keys; for administrators."""
    found = ask(url, data, lambda lane: lane.administer("directory.list"), offline=True)
    if as_json:
        write_json(found)
        return
    _show([(each["name"], each["keys"]) for each in found])


@recipient_commands.command(
    epilog=examples("sealane recipient show billing", "sealane recipient show billing --pem > billing.pub")
)
def show(
    name: Name,
    pem: Annotated[bool, typer.Option("--pem", help="Write the public keys themselves.")] = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show a recipient's keys. Compare the fingerprint with what its owner tells you by another way, then pin it."""
    found = ask(url, data, lambda lane: lane.administer("directory.get", names=[name]), offline=True)
    if as_json:
        write_json(found[name])
    elif pem:
        for key in found[name]:
            typer.echo(key["pem"], nl=False)
    else:
        _show([(name, found[name])])


@recipient_commands.command(
    epilog=examples(
        "sealane recipient remove billing --fingerprint SHA256:Aq0k…", "sealane recipient remove billing --yes"
    )
)
def remove(
    name: Name,
    fingerprint: Annotated[
        str | None, typer.Option("--fingerprint", help="This key alone.", show_default="all of the recipient's")
    ] = None,
    yes: Yes = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Seal nothing for a key any more. What was sealed for it before still opens with it."""
    which = fingerprint or "every key"
    confirm(f"Take {which} of {name} out of the directory?", yes=yes)
    removed = ask(
        url, data, lambda lane: lane.administer("directory.remove", name=name, fingerprint=fingerprint), offline=True
    )
    for each in removed["removed"]:
        typer.echo(f"{name} is no longer sealed for by {each}; senders forget it within minutes")


def _show(found: list[tuple[str, list[dict[str, Any]]]]) -> None:
    rows = [
        (name, key["algorithm"], key["fingerprint"], moment(key["registered_us"]), key["by"], key["comment"])
        for name, keys in found
        for key in keys
    ]
    show_table(
        ["recipient", "key", "fingerprint", "registered", "by", "comment"],
        rows,
        empty="no recipients: `sealane recipient register NAME --public-key FILE` adds one",
    )
