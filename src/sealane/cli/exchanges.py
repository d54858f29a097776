"""`sealane exchange …`: from routing keys to topics."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sealane.cli.completing import complete_topic
from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Exchange, Url
from sealane.cli.output import examples, show_table, write_json
from sealane.routing.exchanges import ExchangeKind

exchange_commands = typer.Typer(cls=SealaneGroup, no_args_is_help=True, help="Route by key: exchanges and bindings.")

Target = Annotated[
    str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic, help="Where matching messages go.")
]
RoutingKey = Annotated[
    str, typer.Option("--key", "-k", help="The routing key; in a topic exchange * is one word, # any number.")
]


@exchange_commands.command(
    epilog=examples("sealane exchange declare events --kind topic", "sealane exchange declare news --kind fanout")
)
def declare(
    exchange: Exchange,
    kind: Annotated[ExchangeKind, typer.Option("--kind", help="How keys are compared.")] = "direct",
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make sure that an exchange exists: `direct` (same key), `topic` (patterns) or `fanout` (everything)."""
    ask(url, data, lambda lane: lane.declare_exchange(exchange, kind))
    typer.echo(f"exchange {exchange} is there, {kind}")


@exchange_commands.command(
    epilog=examples("sealane exchange bind events orders --key order.*", "sealane exchange bind events audit --key '#'")
)
def bind(exchange: Exchange, topic: Target, key: RoutingKey = "", url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Send what matches the key to a topic too."""
    ask(url, data, lambda lane: lane.bind(exchange, topic, key))
    typer.echo(f"{exchange} sends {key!r} to {topic}")


@exchange_commands.command(epilog=examples("sealane exchange unbind events orders --key order.*"))
def unbind(exchange: Exchange, topic: Target, key: RoutingKey = "", url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Take a binding away."""
    ask(url, data, lambda lane: lane.unbind(exchange, topic, key))
    typer.echo(f"{exchange} no longer sends {key!r} to {topic}")


@exchange_commands.command(
    name="list", epilog=examples("sealane exchange list", "sealane exchange list --json | jq '.[].bindings'")
)
def list_exchanges(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List the exchanges with their bindings."""
    found = ask(url, data, lambda lane: lane.exchanges())
    if as_json:
        write_json(
            [
                {
                    "name": name,
                    "kind": each.kind,
                    "bindings": [{"key": bound.pattern, "topic": bound.topic} for bound in each.bindings],
                }
                for name, each in found.items()
            ]
        )
        return
    rows: list[tuple[object, ...]] = []
    for name, each in found.items():
        rows.extend((name, each.kind, bound.pattern, bound.topic) for bound in each.bindings)
        if not each.bindings:
            rows.append((name, each.kind, "", "(nothing is bound)"))
    show_table(
        ["exchange", "kind", "key", "topic"], rows, empty="no exchanges: `sealane exchange declare NAME` makes one"
    )


@exchange_commands.command(
    name="publish",
    epilog=examples(
        "sealane exchange publish events order.created '{\"id\": 42}'",
        "sealane exchange publish news '' 'it is here' --json",
    ),
)
def publish_to(
    exchange: Exchange,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The routing key.")],
    payload: Annotated[str, typer.Argument(metavar="PAYLOAD", help="The message's text.")],
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Publish a message to every topic that the routing key leads to, together."""
    receipts = ask(url, data, lambda lane: lane.publish_to(exchange, key, os.fsencode(payload)))
    if as_json:
        write_json(
            {
                topic: {"id": str(each.id), "partition": each.partition, "offset": each.offset}
                for topic, each in receipts.items()
            }
        )
        return
    for topic, each in receipts.items():
        typer.echo(f"published {each.id} to {topic}: partition {each.partition}, offset {each.offset:,}")
