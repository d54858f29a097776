"""`sealane cipher …`: messages that only their receiver can read, by CipherMQ's protocol."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.cipher_receive import receive
from sealane.cli.cipher_send import send
from sealane.cli.group import SealaneGroup
from sealane.cli.key_files import read_passphrase
from sealane.cli.options import AsJson
from sealane.cli.output import examples, write_json

cipher_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Send and receive by CipherMQ's protocol, encrypted end to end."
)


@cipher_commands.command(
    epilog=examples(
        "sealane cipher keygen",
        "sealane cipher keygen --out keys/billing --bits 3072",
        "sealane cipher keygen --out keys/billing --passphrase-file secret.txt",
    )
)
def keygen(
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR/NAME", help="Where the two files go: NAME.key and NAME.pub.")
    ] = Path("receiver"),
    bits: Annotated[
        int, typer.Option("--bits", metavar="2048|3072|4096", help="Longer is stronger, and slower to decrypt with.")
    ] = 2048,
    passphrase_file: Annotated[
        Path | None,
        typer.Option("--passphrase-file", help="Protect the private key by the passphrase in this file's first line."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Make a receiver's RSA key pair, here and without a broker: the private key stays, the public one is for senders.

    What was encrypted for a key can be read with its private half alone: back it up.
    """
    from sealane.cipher.keys import fingerprint, new_key, write_pair

    passphrase = None if passphrase_file is None else read_passphrase(passphrase_file)
    key = new_key(bits)
    files = write_pair(out, key, passphrase)
    known_by = fingerprint(key.public_key())
    if as_json:
        write_json({"private": str(files.private), "public": str(files.public), "fingerprint": known_by})
        return
    typer.echo(f"{files.private}: the private key; back it up, without it nothing that was sent to it can be read")
    typer.echo(f"{files.public}: the public key, {known_by}")
    typer.echo(f"send to it by: sealane cipher send EXCHANGE KEY TEXT --to {files.public}", err=True)


cipher_commands.command(
    epilog=examples(
        "sealane cipher send orders eu hello --to receiver.pub --queue billing",
        "sealane cipher send orders eu --file invoice.pdf --to receiver.pub --oaep sha256",
        "tail -f app.log | sealane cipher send logs app --lines --to receiver.pub",
        "sealane cipher send orders eu hello --to receiver.pub --host 10.0.0.5 --tls --ca ca.crt",
    )
)(send)
cipher_commands.command(
    epilog=examples(
        "sealane cipher receive billing --key receiver.key",
        "sealane cipher receive billing --key receiver.key --exchange orders --routing-key eu --count 10",
        "sealane cipher receive billing --key receiver.key --out received.jsonl --quiet",
        "sealane cipher receive billing --key receiver.key --wait 5s --json | jq .message",
    )
)(receive)
