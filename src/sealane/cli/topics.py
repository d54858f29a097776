"""`sealane topic …`: make, list, look at, change and delete topics."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sealane.cli.connecting import ask
from sealane.cli.durations import duration
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, DURATION, AsJson, Data, Topic, Url, Yes, seconds
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json
from sealane.cli.subscription_shapes import SUBSCRIPTION_COLUMNS, subscription_object, subscription_row

if TYPE_CHECKING:
    from sealane.client import Lane
    from sealane.node.describe import TopicDescription

topic_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Make, list, look at, change and delete topics."
)

DESCRIBED_AT_ONCE = 32
"""Topics that are asked about at the same time."""

Partitions = Annotated[int | None, typer.Option("--partitions", min=1, help="Logs side by side; only ever more.")]
Retention = Annotated[
    float | None,
    typer.Option("--retention", parser=seconds, metavar=DURATION, help="How long settled messages stay for replay."),
]
MessagesMax = Annotated[
    int | None, typer.Option("--messages-max", min=1, help="Unsettled messages a partition may hold.")
]
WhenFull = Annotated[
    Literal["refuse", "drop-oldest"] | None, typer.Option("--when-full", help="What happens at --messages-max.")
]
IdWindow = Annotated[
    float | None,
    typer.Option("--id-window", parser=seconds, metavar=DURATION, help="How long given ids are remembered."),
]


@topic_commands.command(
    epilog=examples(
        "sealane topic create orders",
        "sealane topic create orders --partitions 4 --retention 30d",
        "sealane topic create ticks --not-durable --messages-max 100000 --when-full drop-oldest",
    )
)
def create(
    topic: Topic,
    partitions: Partitions = None,
    retention: Retention = None,
    messages_max: MessagesMax = None,
    when_full: WhenFull = None,
    id_window: IdWindow = None,
    durable: Annotated[bool, typer.Option("--durable/--not-durable", help="On disk, or in memory only.")] = True,
    sealed: Annotated[bool, typer.Option("--sealed/--not-sealed", help="Encrypted on disk, or plain.")] = True,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make sure that a topic exists. Fails if it exists and differs."""
    config: dict[str, Any] = {
        "partitions": partitions or 1,
        "durable": durable,
        "sealed": sealed,
        **_changes(None, retention, messages_max, when_full, id_window),
    }
    ask(url, data, lambda lane: lane.create_topic(topic, **config))
    typer.echo(f"topic {topic} is there, with {config['partitions']} {_plural(config['partitions'], 'partition')}")


@topic_commands.command(
    name="list", epilog=examples("sealane topic list", "sealane topic list --json | jq -r '.[].name'")
)
def list_topics(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List the topics with what they hold."""
    found = ask(url, data, describe_all)
    if as_json:
        write_json([topic_object(each) for each in found])
        return
    show_table(
        ["topic", ">partitions", ">messages", ">subscriptions", ">deepest", "kept"],
        [
            (
                each.name,
                f"{each.config.partitions:,}",
                f"{_messages(each):,}",
                f"{len(each.subscriptions):,}",
                f"{max((some.depth for some in each.subscriptions), default=0):,}",
                duration(each.config.retention_seconds) if each.config.durable else "in memory",
            )
            for each in found
        ],
        empty="no topics yet: `sealane publish orders hello` makes one",
    )


@topic_commands.command(epilog=examples("sealane topic show orders", "sealane topic show orders --json | jq .config"))
def show(topic: Topic, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Show a topic's configuration, partitions and subscriptions."""
    found = ask(url, data, lambda lane: lane.describe_topic(topic))
    if as_json:
        write_json(topic_object(found))
        return
    config = found.config
    show_facts(
        [
            ("topic", found.name),
            ("messages", f"{_messages(found):,}"),
            ("kept", f"{duration(config.retention_seconds)} after they are settled"),
            ("storage", ("durable" if config.durable else "in memory") + (", sealed" if config.sealed else ", plain")),
            ("limit", "none" if config.messages_max is None else f"{config.messages_max:,}, then {config.when_full}"),
            ("given ids", f"remembered {duration(config.id_window_seconds)}, {config.id_window_ids_max:,} at most"),
        ]
    )
    show_table(
        [">partition", ">first", ">end", ">messages"],
        [
            (each.partition, f"{each.start:,}", f"{each.end:,}", f"{each.end - each.start:,}")
            for each in found.partitions
        ],
        empty="",
    )
    show_table(
        SUBSCRIPTION_COLUMNS[1:],
        [subscription_row(found.name, each)[1:] for each in found.subscriptions],
        empty="no subscriptions",
    )


@topic_commands.command(
    epilog=examples(
        "sealane topic configure orders --retention 30d",
        "sealane topic configure orders --partitions 8 --no-messages-max",
    )
)
def configure(
    topic: Topic,
    partitions: Partitions = None,
    retention: Retention = None,
    messages_max: MessagesMax = None,
    unlimited: Annotated[bool, typer.Option("--no-messages-max", help="Take the limit away.")] = False,
    when_full: WhenFull = None,
    id_window: IdWindow = None,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Change a topic's configuration; what is not named stays."""
    changes = _changes(partitions, retention, messages_max, when_full, id_window)
    if unlimited:
        if messages_max is not None:
            raise typer.BadParameter("--messages-max and --no-messages-max contradict each other")
        changes["messages_max"] = None
    if not changes:
        raise typer.BadParameter("nothing to change: give at least one of the options")
    ask(url, data, lambda lane: lane.configure_topic(topic, **changes))
    typer.echo(f"topic {topic} is changed")


@topic_commands.command(epilog=examples("sealane topic delete orders", "sealane topic delete shop/carts --yes"))
def delete(topic: Topic, yes: Yes = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """Delete a topic with its messages and subscriptions, for good."""
    found = ask(url, data, lambda lane: lane.describe_topic(topic))
    messages, readers = _messages(found), len(found.subscriptions)
    confirm(
        f"Delete topic {found.name} with {messages:,} {_plural(messages, 'message')} and {readers:,} "
        f"{_plural(readers, 'subscription')}?",
        yes=yes,
    )
    ask(url, data, lambda lane: lane.delete_topic(topic))
    typer.echo(f"topic {topic} is deleted")


async def describe_all(lane: Lane) -> list[TopicDescription]:
    """All topics but the system's, in order. One that is deleted meanwhile is left out."""
    from sealane.errors import TopicNotFound

    turns = asyncio.Semaphore(DESCRIBED_AT_ONCE)

    async def describe(name: str) -> TopicDescription | None:
        async with turns:
            try:
                return await lane.describe_topic(name)
            except TopicNotFound:
                return None

    found = await asyncio.gather(*(describe(name) for name in await lane.topics()))
    return [each for each in found if each is not None]


def topic_object(described: TopicDescription) -> dict[str, Any]:
    import msgspec

    return {
        "name": described.name,
        "config": msgspec.to_builtins(described.config),
        "partitions": [
            {"partition": each.partition, "start": each.start, "end": each.end} for each in described.partitions
        ],
        "subscriptions": [subscription_object(each) for each in described.subscriptions],
    }


def _changes(
    partitions: int | None,
    retention: float | None,
    messages_max: int | None,
    when_full: str | None,
    id_window: float | None,
) -> dict[str, Any]:
    given = {
        "partitions": partitions,
        "retention_seconds": retention,
        "messages_max": messages_max,
        "when_full": when_full,
        "id_window_seconds": id_window,
    }
    return {name: value for name, value in given.items() if value is not None}


def _messages(described: TopicDescription) -> int:
    return sum(each.end - each.start for each in described.partitions)


def _plural(count: int, noun: str) -> str:
    return noun if count == 1 else f"{noun}s"
