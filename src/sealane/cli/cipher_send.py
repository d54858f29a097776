"""`sealane cipher send`: encrypt messages for one receiver, and send them until each is acknowledged."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal
from uuid import uuid4

import typer

from sealane.cli.blocking import read_all, read_lines
from sealane.cli.cipher_door import Ca, Certificate, CertificateKey, CipherDoor, Host, Port, Tls, find_door
from sealane.cli.cipher_log import CipherLog
from sealane.cli.connecting import run
from sealane.cli.graceful import finish_in_hand
from sealane.cli.options import DEFAULT_DATA, Data
from sealane.cli.output import write_json_line
from sealane.errors import SealaneError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

    from sealane.cipher.sender import Sender

STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Order:
    """What to send, as it was asked for."""

    exchange: str
    routing_key: str
    texts: Sequence[str]
    file: Path | None
    by_line: bool
    message_id: str | None
    queue: str | None
    oaep: Literal["sha1", "sha256"]
    tries: int
    as_json: bool


def send(
    exchange: Annotated[str, typer.Argument(metavar="EXCHANGE", help="The exchange to send to.")],
    routing_key: Annotated[str, typer.Argument(metavar="KEY", help="Which of its queues are meant.")],
    to: Annotated[Path, typer.Option("--to", metavar="FILE", help="The receiver's public key, as PEM.")],
    texts: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Each is a message; - reads one from standard input."),
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", exists=True, dir_okay=False, help="Send what is in a file.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of standard input, or of the file, is a message.")
    ] = False,
    queue: Annotated[
        str | None,
        typer.Option("--queue", "-q", metavar="QUEUE", help="Declare the exchange and this queue, and bind it to KEY."),
    ] = None,
    id: Annotated[
        str | None, typer.Option("--id", help="The message's own; a repeated one is stored once.", show_default="new")
    ] = None,
    oaep: Annotated[
        Literal["sha1", "sha256"],
        typer.Option("--oaep", help="The hash of RSA-OAEP; receivers of CipherMQ read sha1 unless they are changed."),
    ] = "sha1",
    tries: Annotated[
        int,
        typer.Option(
            "--tries", min=1, max=1_000, help="How often a message is sent before it is given up, each for 5s."
        ),
    ] = 3,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="With --lines, tell of each message.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Tell of each message by a JSON object a line.")] = False,
    host: Host = None,
    port: Port = None,
    tls: Tls = False,
    ca: Ca = None,
    certificate: Certificate = None,
    certificate_key: CertificateKey = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Encrypt messages for one receiver, and send them until the broker has acknowledged each.

    A message that is not acknowledged within 5 seconds is sent again on a new connection, under the same id.
    """
    from sealane.cipher.keys import read_public_key

    order = Order(exchange, routing_key, texts or [], file, lines, id, queue, oaep, tries, as_json)
    _check(order)
    receiver = read_public_key(to)
    door = find_door(host, port, data, tls=tls, ca=ca, certificate=certificate, certificate_key=certificate_key)
    log = CipherLog(as_json=as_json, quiet=lines and not verbose)
    run(_send(door, order, receiver, log))


def _check(order: Order) -> None:
    """Refuse what contradicts itself, before anything is sent."""
    given = bool(order.texts) + (order.file is not None) + (order.by_line and order.file is None)
    if given == 0:
        raise typer.BadParameter("nothing to send: give TEXT, - for standard input, --file F or --lines")
    if given > 1 or (order.by_line and order.texts):
        raise typer.BadParameter(
            "TEXT, --file and --lines each say what to send; choose one (--lines goes with --file)"
        )
    if STANDARD_INPUT in order.texts and len(order.texts) > 1:
        raise typer.BadParameter("- reads one message from standard input; it does not go with other TEXT")
    if order.message_id is not None and (order.by_line or len(order.texts) > 1):
        raise typer.BadParameter("--id names one message")


async def _send(door: CipherDoor, order: Order, receiver: RSAPublicKey, log: CipherLog) -> None:
    from sealane.cipher.lines import declare
    from sealane.cipher.sender import Sender
    from sealane.cipher.trying import Patience

    patience = Patience(tries=order.tries)
    declaring = [] if order.queue is None else declare(order.queue, order.exchange, order.routing_key)
    sender = Sender(door.dial, order.exchange, order.routing_key, declaring=declaring, patience=patience, tell=log.tell)

    def stop() -> bool:
        sender.stop()
        return bool(sender.pending)

    try:
        with log.progressing("sending", "messages", None):
            await finish_in_hand(_send_all(sender, order, receiver), stop)
    except (SealaneError, asyncio.CancelledError) as error:
        _tell_pending(sender, order, error)
        raise
    finally:
        await sender.close()
    if order.by_line and not order.as_json:
        typer.echo(f"sent {sender.acknowledged:,} messages to {order.exchange}, all acknowledged")


async def _send_all(sender: Sender, order: Order, receiver: RSAPublicKey) -> None:
    from sealane.cipher.hybrid import encrypt

    async for bodies in _bodies(order):
        await sender.send(
            [encrypt(body, order.message_id or str(uuid4()), receiver, oaep=order.oaep) for body in bodies]
        )
        if sender.stopped:
            return


async def _bodies(order: Order) -> AsyncIterator[list[bytes]]:
    """What to send, as it comes."""
    from sealane.cipher.hybrid import BODY_BYTES_MAX

    if order.texts and order.texts != [STANDARD_INPUT]:
        yield [os.fsencode(text) for text in order.texts]
        return
    descriptor = sys.stdin.fileno() if order.file is None else os.open(order.file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not order.by_line:
            # A little more than the limit is enough for the refusal.
            yield [await read_all(descriptor, BODY_BYTES_MAX)]
            return
        async for lines in read_lines(descriptor, BODY_BYTES_MAX):
            yield lines
    finally:
        if order.file is not None:
            os.close(descriptor)


def _tell_pending(sender: Sender, order: Order, error: BaseException) -> None:
    """What is lost now, unless it is sent again: for people with the error, for programs as JSON."""
    from sealane.cipher.errors import tell_ids

    if order.as_json:
        for message_id in sender.pending:
            write_json_line({"message_id": message_id, "acknowledged": False})
    done = f"{sender.acknowledged:,} messages were acknowledged"
    if isinstance(error, SealaneError):
        if sender.acknowledged:
            error.add_note(f"{done} before")
    elif sender.pending:
        typer.echo(f"interrupted: {done}, pending: {tell_ids(list(sender.pending))}", err=True)
    else:
        typer.echo(f"interrupted: {done}, none is pending", err=True)
