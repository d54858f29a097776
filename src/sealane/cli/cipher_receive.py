"""`sealane cipher receive`: decrypt a queue's messages into a file, and acknowledge each once it is durable there."""

from __future__ import annotations

import asyncio
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sealane.cli.cipher_door import Ca, Certificate, CertificateKey, CipherDoor, Host, Port, Tls, find_door
from sealane.cli.cipher_log import CipherLog
from sealane.cli.connecting import run
from sealane.cli.graceful import finish_in_hand
from sealane.cli.group import fail
from sealane.cli.key_files import passphrase_of
from sealane.cli.options import DEFAULT_DATA, DURATION, Data, seconds

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

    from sealane.cipher.received import ReceivedFile
    from sealane.cipher.receiver import Order, Receiver


def receive(
    queue: Annotated[str, typer.Argument(metavar="QUEUE", help="The queue to receive from.")],
    key: Annotated[Path, typer.Option("--key", "-k", metavar="FILE", help="The receiver's private key, as PEM.")],
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="Where messages go: .json is an array, .jsonl is for many of them."
        ),
    ] = Path("received_messages.json"),
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after that many messages.")] = None,
    wait: Annotated[
        float | None,
        typer.Option(
            "--wait", parser=seconds, metavar=DURATION, show_default="never", help="End when nothing came for so long."
        ),
    ] = None,
    exchange: Annotated[
        str | None, typer.Option("--exchange", help="Declare the queue and this exchange, and bind them.")
    ] = None,
    routing_key: Annotated[str | None, typer.Option("--routing-key", help="The key to bind them by.")] = None,
    undecryptable: Annotated[
        Literal["skip", "stop"],
        typer.Option("--undecryptable", help="Go on after a message that cannot be decrypted, or end."),
    ] = "skip",
    passphrase_file: Annotated[
        Path | None,
        typer.Option("--passphrase-file", help="Where the private key's passphrase is, in the first line."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show how far it is, and not each message.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Write each message as a JSON object a line, too.")] = False,
    host: Host = None,
    port: Port = None,
    tls: Tls = False,
    ca: Ca = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Decrypt a queue's messages into a file, and acknowledge each once it is durable there.

    The file has each message once, also over restarts: one that comes again is acknowledged and not stored. What
    cannot be decrypted is not acknowledged, and comes again. A lost connection is made again. Ctrl-C ends it.
    """
    from sealane.cipher.lines import declare
    from sealane.cipher.received import open_received
    from sealane.cipher.receiver import Order

    if (exchange is None) != (routing_key is None):
        raise typer.BadParameter("--exchange and --routing-key go together: the queue is bound by both")
    declaring = []
    if exchange is not None and routing_key is not None:
        declaring = declare(queue, exchange, routing_key)
    private = _private_key(key, passphrase_file)
    door = find_door(host, port, data, tls=tls, ca=ca, certificate=certificate, certificate_key=certificate_key)
    order = Order(queue, declaring, count, wait, undecryptable)
    with open_received(out) as received:
        receiver = run(_receive(door, order, private, received, CipherLog(as_json=as_json, quiet=quiet)))
    if not as_json:
        typer.echo(f"received {receiver.stored:,} messages into {out}")
    _tell_troubles(receiver)


async def _receive(
    door: CipherDoor, order: Order, key: RSAPrivateKey, received: ReceivedFile, log: CipherLog
) -> Receiver:
    from sealane.cipher.intake import Intake
    from sealane.cipher.receiver import Receiver

    receiver = Receiver(door.dial, order, Intake(key, received, _now), tell=log.tell)

    def stop() -> bool:
        receiver.stop()
        return True

    try:
        with log.progressing("receiving", "messages", order.count):
            await finish_in_hand(receiver.run(), stop)
    except asyncio.CancelledError:
        waiting = f"{len(receiver.unconfirmed):,} of them not confirmed" if receiver.unconfirmed else "all confirmed"
        typer.echo(f"interrupted: received {receiver.stored:,} messages, {waiting}", err=True)
        raise
    return receiver


def _tell_troubles(receiver: Receiver) -> None:
    """Messages that somebody has to look after."""
    from sealane.cipher.errors import tell_ids

    problems = []
    if receiver.undecryptable:
        problems.append(f"{receiver.undecryptable:,} messages could not be decrypted, and were not acknowledged")
    if receiver.unconfirmed:
        told = tell_ids(sorted(receiver.unconfirmed))
        problems.append(f"the broker has not confirmed the acks of {told}: they are stored, and may come again")
    if problems:
        fail("; ".join(problems))


def _private_key(path: Path, passphrase_file: Path | None) -> RSAPrivateKey:
    from sealane.cipher.keys import needs_passphrase, read_private_key
    from sealane.client.profiles import OTHERS

    passphrase = passphrase_of(path, passphrase_file) if needs_passphrase(path) else None
    key = read_private_key(path, passphrase)
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & OTHERS:
        typer.echo(f"warning: {path} has mode {mode:04o}, so that others can read it: do `chmod 600 {path}`", err=True)
    return key


def _now() -> datetime:
    return datetime.now(UTC)
