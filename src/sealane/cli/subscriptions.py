"""`sealane subscription …`: list, look at, move and delete subscriptions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from sealane.cli.completing import complete_topic
from sealane.cli.connecting import ask
from sealane.cli.durations import duration
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Subscription, Topic, Url, Yes
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json
from sealane.cli.starts import START_HELP, parse_start
from sealane.cli.subscription_shapes import SUBSCRIPTION_COLUMNS, subscription_object, subscription_row
from sealane.cli.topics import describe_all
from sealane.errors import SubscriptionNotFound

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.node.describe import SubscriptionDescription, TopicDescription

subscription_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="List, look at, move and delete subscriptions."
)


@subscription_commands.command(
    name="list",
    epilog=examples("sealane subscription list", "sealane subscription list orders --json | jq '.[].depth'"),
)
def list_subscriptions(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", autocompletion=complete_topic, help="Only those of this topic.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List subscriptions with how far they are."""

    async def look(lane: Lane) -> list[TopicDescription]:
        return await describe_all(lane) if topic is None else [await lane.describe_topic(topic)]

    rows = [(found.name, each) for found in ask(url, data, look) for each in found.subscriptions]
    if as_json:
        write_json([{"topic": name, **subscription_object(each)} for name, each in rows])
        return
    show_table(
        SUBSCRIPTION_COLUMNS,
        [subscription_row(name, each) for name, each in rows],
        empty="no subscriptions yet: `sealane consume TOPIC --subscription NAME` makes one",
    )


@subscription_commands.command(
    epilog=examples(
        "sealane subscription show orders billing", "sealane subscription show orders billing --json | jq .positions"
    )
)
def show(
    topic: Topic, subscription: Subscription, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA
) -> None:
    """Show a subscription's configuration and position."""
    described = ask(url, data, lambda lane: lane.describe_topic(topic))
    found = find_subscription(described, subscription)
    if as_json:
        write_json({"topic": described.name, **subscription_object(found)})
        return
    retry = found.config.retry
    longest = f" up to {duration(retry.delay_seconds_max)}" if retry.kind == "exponential" else ""
    show_facts(
        [
            ("topic", described.name),
            ("subscription", found.name),
            ("mode", found.config.mode),
            ("filter", found.config.filter or "none"),
            ("lease", duration(found.config.lease_seconds)),
            ("retries", f"{retry.kind} from {duration(retry.delay_seconds)}{longest}, {retry.attempts_max} attempts"),
            ("unsettled", f"{found.depth:,}"),
            ("of these leased", f"{found.leased:,}"),
            ("waiting", f"{found.waiting:,}"),
            ("dying", f"{found.dying:,}"),
            ("consumers", f"{found.consumers:,}"),
        ]
    )
    ends = {each.partition: each.end for each in described.partitions}
    show_table(
        [">partition", ">position", ">end", ">behind"],
        [
            (partition, f"{at:,}", f"{ends.get(partition, at):,}", f"{max(0, ends.get(partition, at) - at):,}")
            for partition, at in sorted(found.positions.items())
        ],
        empty="no position is kept: each consumer of a broadcast has its own",
    )


@subscription_commands.command(
    epilog=examples(
        "sealane subscription seek orders billing earliest",
        "sealane subscription seek orders billing 2h --yes",
        "sealane subscription seek orders billing 0:1200,1:800",
    )
)
def seek(
    topic: Topic,
    subscription: Subscription,
    start: Annotated[str, typer.Argument(metavar="WHERE", help=f"Where to go on: {START_HELP}.")],
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Let a subscription go on from somewhere else: what it skips is not delivered, what it repeats comes again."""
    begin = parse_start(start)
    confirm(f"Let {subscription} of {topic} go on from {start}?", yes=yes)
    positions = ask(url, data, lambda lane: lane.seek(topic, subscription, begin))
    if as_json:
        write_json({str(partition): offset for partition, offset in sorted(positions.items())})
        return
    places = ", ".join(f"partition {partition} at {offset:,}" for partition, offset in sorted(positions.items()))
    typer.echo(f"{subscription} of {topic} goes on from {places}")


@subscription_commands.command(epilog=examples("sealane subscription delete orders billing --yes"))
def delete(
    topic: Topic, subscription: Subscription, yes: Yes = False, url: Url = None, data: Data = DEFAULT_DATA
) -> None:
    """Delete a subscription, and with it its position; the topic's messages stay."""
    described = ask(url, data, lambda lane: lane.describe_topic(topic))
    found = find_subscription(described, subscription)
    confirm(f"Delete {subscription} of {described.name}, with {found.depth:,} messages unsettled?", yes=yes)
    ask(url, data, lambda lane: lane.unsubscribe(topic, subscription))
    typer.echo(f"subscription {subscription} of {topic} is deleted")


def find_subscription(described: TopicDescription, name: str) -> SubscriptionDescription:
    for each in described.subscriptions:
        if each.name == name:
            return each
    known = ", ".join(each.name for each in described.subscriptions) or "none"
    raise SubscriptionNotFound(f"{described.name}:{name}", f"subscriptions there: {known}")
