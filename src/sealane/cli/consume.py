"""`sealane consume`: messages of a subscription on standard output, acknowledged once they are written."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sealane.cli.completing import complete_subscription
from sealane.cli.connecting import ask
from sealane.cli.group import fail
from sealane.cli.options import DEFAULT_DATA, DURATION, Data, Topic, Url, seconds
from sealane.cli.output import examples
from sealane.cli.starts import START_HELP, parse_start
from sealane.delivery.config import LEASE_SECONDS_DEFAULT, Mode

if TYPE_CHECKING:
    from sealane.client import Lane

consume_command = typer.Typer()

WAIT_SECONDS = 3.0
"""How long it waits for more before it ends, while messages are with others or wait for a retry."""


@consume_command.command(
    name="consume",
    epilog=examples(
        "sealane consume orders --subscription billing",
        "sealane consume orders -s billing --follow --json | jq .payload",
        "sealane consume orders -s eu --filter \"headers['region'] = 'eu'\" --count 10",
        "sealane consume orders --peek --count 5 --verbose",
        "sealane consume orders -s billing --open-with billing.key",
    ),
)
def consume(
    topic: Topic,
    subscription: Annotated[
        str | None,
        typer.Option(
            "--subscription",
            "-s",
            metavar="NAME",
            autocompletion=complete_subscription,
            help="Whose position to read from; it is made if it is new.",
        ),
    ] = None,
    count: Annotated[int | None, typer.Option("--count", "-n", min=1, help="End after that many messages.")] = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on for ever. Without it, the end comes when all is read.")
    ] = False,
    wait: Annotated[
        float,
        typer.Option(
            "--wait", parser=seconds, metavar=DURATION, help="How long to wait for messages that are not ready."
        ),
    ] = WAIT_SECONDS,
    peek: Annotated[
        bool,
        typer.Option("--peek", "--no-ack", help="Only look: nothing is leased or acknowledged. Needs no subscription."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
    raw: Annotated[bool, typer.Option("--raw", help="The payloads' bytes with nothing between them.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Tell place, time, key and headers before each payload.")
    ] = False,
    mode: Annotated[Mode, typer.Option("--mode", help="How consumers share the subscription.")] = "queue",
    start: Annotated[
        str, typer.Option("--start", metavar="WHERE", help=f"Where a new subscription begins: {START_HELP}.")
    ] = "earliest",
    filter: Annotated[
        str | None,
        typer.Option("--filter", metavar="SQL", help="Only what matches, such as `priority > 5 AND key = 'a'`."),
    ] = None,
    lease: Annotated[
        float,
        typer.Option(
            "--lease-seconds", "--lease", parser=seconds, metavar=DURATION, help="How long a message is kept for us."
        ),
    ] = LEASE_SECONDS_DEFAULT,
    open_with: Annotated[
        list[Path] | None,
        typer.Option("--open-with", metavar="FILE", help="A private key: payloads sealed for it come opened."),
    ] = None,
    passphrase_file: Annotated[
        Path | None,
        typer.Option("--passphrase-file", help="Where the private key's passphrase is, in the first line."),
    ] = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Write a subscription's messages to standard output, and acknowledge each once it is written.

    Ends when all is read, unless told to --follow. What was not written goes back, also when the reader leaves early.
    """
    from sealane.cli.formats import Format
    from sealane.cli.key_files import read_private_keys
    from sealane.cli.peeking import peek_messages
    from sealane.cli.reading import Order, Reader

    if sum((as_json, raw, verbose)) > 1:
        raise typer.BadParameter("--json, --raw and --verbose are three ways to write a message; choose one")
    if subscription is None and not peek:
        raise typer.BadParameter("give --subscription NAME, or --peek to look without one")
    if peek and (follow or filter is not None or mode != "queue"):
        raise typer.BadParameter("--peek reads what is stored: it takes neither --follow nor --filter nor --mode")
    begin = parse_start(start)
    keys = read_private_keys(open_with, passphrase_file) if open_with else None
    form = Format.json if as_json else Format.raw if raw else Format.verbose if verbose else Format.text

    async def work(lane: Lane) -> int:
        if peek:
            return await peek_messages(lane, topic, subscription, begin, count, form, keys)
        order = Order(topic, str(subscription), mode, begin, filter, lease, count, follow, wait, keys)
        reader = Reader(lane, order, form)
        done = await reader.run()
        if reader.unopened:
            fail(f"{reader.unopened:,} messages could not be opened, and went back")
        return done

    found: Any = ask(url, data, work)
    if sys.stderr.isatty():
        typer.echo(f"{found:,} messages", err=True)
