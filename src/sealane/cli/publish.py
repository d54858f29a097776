"""`sealane publish`: one message, or as many as there are lines."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.blocking import StandardOutput, read_all, read_lines
from sealane.cli.connecting import ask
from sealane.cli.durations import duration, rate
from sealane.cli.options import DEFAULT_DATA, DURATION, Data, Topic, Url, seconds
from sealane.cli.output import examples
from sealane.cli.sending import Item, Sender, receipt_line

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.client.sealing import SealFor

publish_command = typer.Typer()

STANDARD_INPUT = "-"
_REPEATS_AT_ONCE = 1_000


@dataclass(frozen=True)
class Order:
    """What to publish, as it was asked for."""

    topic: str
    payload: str | None
    file: Path | None
    by_line: bool
    as_objects: bool
    count: int | None
    options: dict[str, Any]
    as_json: bool
    seal_for: SealFor | None = None

    @property
    def is_many(self) -> bool:
        return self.by_line or self.as_objects or self.count is not None


@publish_command.command(
    name="publish",
    epilog=examples(
        "sealane publish orders hello",
        "sealane publish orders --file invoice.pdf --key 42 --header region=eu --ttl 1h",
        "tail -f app.log | sealane publish logs --lines",
        "sealane consume orders -s audit --json | sealane publish copies --jsonl",
        "sealane publish orders hello --seal-for billing --seal-for audit",
    ),
)
def publish(
    topic: Topic,
    payload: Annotated[
        str | None, typer.Argument(metavar="PAYLOAD", help="The message's text; - reads it from standard input.")
    ] = None,
    file: Annotated[
        Path | None, typer.Option("--file", "-f", exists=True, dir_okay=False, help="Read the payload from a file.")
    ] = None,
    lines: Annotated[
        bool, typer.Option("--lines", help="Each line of standard input, or of the file, is a message.")
    ] = False,
    jsonl: Annotated[
        bool,
        typer.Option("--jsonl", help='Each line is a message as JSON: {"payload": "…", "key": "…", "headers": {…}}.'),
    ] = False,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="Publish it that many times.")] = None,
    key: Annotated[
        str | None, typer.Option("--key", "-k", help="Messages of one key stay in one partition, in order.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("--header", "-H", metavar="NAME=VALUE", help="A header; may be repeated.")
    ] = None,
    priority: Annotated[int, typer.Option("--priority", "-p", min=1, max=10, help="Higher goes first.")] = 5,
    ttl: Annotated[
        float | None, typer.Option("--ttl", parser=seconds, metavar=DURATION, help="Nobody wants it after this.")
    ] = None,
    delay: Annotated[
        float | None, typer.Option("--delay", parser=seconds, metavar=DURATION, help="Deliver it no sooner than this.")
    ] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="UUID", help="A repeated id is stored once.")] = None,
    seal_for: Annotated[
        list[str] | None,
        typer.Option(
            "--seal-for",
            metavar="NAME[=FINGERPRINT]",
            help="Seal it for this recipient, end to end; with the fingerprint, for that key and no other.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Write the receipts, a JSON object a line.")] = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Publish messages to a topic, and end when they are durable.

    The topic is made if it does not exist.
    """
    options = {
        "key": None if key is None else os.fsencode(key),
        "headers": _headers(header or []),
        "priority": priority,
        "ttl": ttl,
        "delay": delay or 0,
        "id": id,
    }
    order = Order(topic, payload, file, lines, jsonl, count, options, as_json, _recipients(seal_for or []))
    _check(order)
    ask(url, data, lambda lane: _publish(lane, order))


def _headers(written: Sequence[str]) -> dict[str, str] | None:
    headers = {}
    for each in written:
        name, equals, value = each.partition("=")
        if not equals or not name:
            raise typer.BadParameter(f"{each!r} is not NAME=VALUE", param_hint="--header")
        headers[name] = value
    return headers or None


def _recipients(written: Sequence[str]) -> SealFor | None:
    if not any("=" in each for each in written):
        return written or None
    pins = dict(each.split("=", 1) for each in written if "=" in each)
    if len(pins) != len(written):
        raise typer.BadParameter("give the fingerprint of every recipient, or of none", param_hint="--seal-for")
    return pins


def _check(order: Order) -> None:
    """Refuse what contradicts itself, before anything is sent."""
    by_line = order.by_line or order.as_objects
    if order.by_line and order.as_objects:
        raise typer.BadParameter("--lines and --jsonl read lines in different ways; choose one")
    if by_line and order.payload not in (None, STANDARD_INPUT):
        raise typer.BadParameter("lines come from standard input or --file; leave PAYLOAD out")
    if order.payload is not None and order.file is not None:
        raise typer.BadParameter("PAYLOAD and --file both say what to publish; choose one")
    if order.payload is None and order.file is None and not by_line:
        raise typer.BadParameter("nothing to publish: give PAYLOAD, - for standard input, --file F or --lines")
    if order.options["id"] is not None and order.is_many:
        raise typer.BadParameter("--id names one message; with --jsonl each line may have its own")
    if by_line and order.count is not None:
        raise typer.BadParameter("--count repeats one payload; it does not go with lines")


async def _publish(lane: Lane, order: Order) -> None:
    if order.is_many:
        await _publish_many(lane, order)
        return
    receipt = await lane.publish(order.topic, await _payload(lane, order), seal_for=order.seal_for, **order.options)
    if order.as_json:
        await StandardOutput().write([receipt_line(receipt)])
    else:
        place = f"partition {receipt.partition}, offset {receipt.offset:,}"
        typer.echo(f"published {receipt.id} to {order.topic}: {place}")


async def _payload(lane: Lane, order: Order) -> bytes:
    if order.file is None and order.payload != STANDARD_INPUT:
        return os.fsencode(order.payload or "")
    descriptor = sys.stdin.fileno() if order.file is None else os.open(order.file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # A little more than the limit is enough for the refusal.
        return await read_all(descriptor, lane.outgoing.limits.payload_bytes_max)
    finally:
        if order.file is not None:
            os.close(descriptor)


async def _publish_many(lane: Lane, order: Order) -> None:
    from sealane.cli.progress import progress_bar

    sender = Sender(lane, order.topic, receipts=StandardOutput() if order.as_json else None, seal_for=order.seal_for)
    started = time.monotonic()
    total = order.count or (order.file.stat().st_size if order.file is not None else None)
    with progress_bar("publishing", "messages" if order.count else "bytes") as progress:
        async for items, done in _items(lane, order):
            await sender.send(items)
            progress(done, total)
    passed = time.monotonic() - started
    if not order.as_json:
        speed = f" in {duration(passed)} ({rate(sender.messages / passed)})" if passed >= 1 else ""
        typer.echo(f"published {sender.messages:,} messages to {order.topic}{speed}")


async def _items(lane: Lane, order: Order) -> AsyncIterator[tuple[list[Item], int]]:
    """Messages to send, with how far that is: messages of `--count`, else bytes."""
    common = {name: value for name, value in order.options.items() if name != "id"}
    if order.count is not None:
        payload = await _payload(lane, order)
        for start in range(0, order.count, _REPEATS_AT_ONCE):
            stop = min(start + _REPEATS_AT_ONCE, order.count)
            yield [Item(number + 1, {"payload": payload, **common}) for number in range(start, stop)], stop
        return
    descriptor = sys.stdin.fileno() if order.file is None else os.open(order.file, os.O_RDONLY | os.O_CLOEXEC)
    # JSON may spell each byte of a payload in six characters.
    line_bytes_max = lane.outgoing.limits.payload_bytes_max * (8 if order.as_objects else 1)
    try:
        number = done = 0
        async for lines in read_lines(descriptor, line_bytes_max):
            items = []
            for line in lines:
                number += 1
                done += len(line) + 1
                if not order.as_objects:
                    items.append(Item(number, {"payload": line, **common}))
                elif line.strip():
                    items.append(Item(number, common, line))
            yield items, done
    finally:
        if order.file is not None:
            os.close(descriptor)
