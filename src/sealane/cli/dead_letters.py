"""`sealane dlq …`: what subscriptions have given up, why, and its way back."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from sealane.cli.connecting import ask
from sealane.cli.group import SealaneGroup
from sealane.cli.options import DEFAULT_DATA, AsJson, Data, Subscription, Topic, Url, Yes
from sealane.cli.output import confirm, examples, plain, show_table, write_json, write_json_line
from sealane.cli.subscriptions import find_subscription
from sealane.cli.topics import describe_all

if TYPE_CHECKING:
    from sealane.cli.peeking import StoredMessage
    from sealane.client import Lane
    from sealane.node.describe import TopicDescription
    from sealane.node.redrive import RedriveReport

dead_letter_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Dead letters: what subscriptions gave up, why, and its way back."
)

_ENDING = ".dead"
_PREVIEW_CHARS = 60


class DeadLetters(NamedTuple):
    """The dead letters of a subscription that wait to be driven back."""

    topic: str
    subscription: str | None
    """None: it is gone; the dead letters stay."""
    dead_topic: str
    messages: int


@dead_letter_commands.command(
    name="list", epilog=examples("sealane dlq list", "sealane dlq list --json | jq '.[] | select(.messages > 100)'")
)
def list_dead_letters(as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA) -> None:
    """List the subscriptions that have dead letters, with how many."""

    async def look(lane: Lane) -> list[DeadLetters]:
        return dead_letters_of(await describe_all(lane))

    found = ask(url, data, look)
    if as_json:
        write_json([each._asdict() for each in found])
        return
    show_table(
        ["topic", "subscription", ">dead letters", "kept in"],
        [(each.topic, each.subscription or "(deleted)", f"{each.messages:,}", each.dead_topic) for each in found],
        empty="no dead letters",
    )


@dead_letter_commands.command(
    epilog=examples(
        "sealane dlq show orders billing", "sealane dlq show orders billing --count 1000 --json | jq .reason"
    )
)
def show(
    topic: Topic,
    subscription: Subscription,
    count: Annotated[int, typer.Option("--count", "-n", min=1, help="Show at most that many.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a line.")] = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Show dead letters with reason, attempts and origin. Only looks: nothing is leased or moved."""
    found = ask(url, data, lambda lane: _look(lane, topic, subscription, count))
    stories = [Story(message) for message in found]
    if as_json:
        for story in stories:
            write_json_line(story.as_object())
        return
    show_table(
        [">place", "died", ">attempts", "reason", "origin", "key", "payload"],
        [story.row() for story in stories],
        empty=f"no dead letters of {subscription} in {topic}",
    )


@dead_letter_commands.command(
    epilog=examples(
        "sealane dlq redrive orders billing --dry-run",
        "sealane dlq redrive orders billing --rate 100 --max 5000 --yes",
        "sealane dlq redrive orders billing --filter \"headers['sealane-dead-reason'] = 'timeout'\" --yes",
    )
)
def redrive(
    topic: Topic,
    subscription: Subscription,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only tell what would be sent back.")] = False,
    rate: Annotated[
        float | None, typer.Option("--rate", min=0.001, metavar="PER-SECOND", help="Messages a second, at most.")
    ] = None,
    filter: Annotated[str | None, typer.Option("--filter", metavar="SQL", help="Only dead letters that match.")] = None,
    messages_max: Annotated[int | None, typer.Option("--max", min=1, help="At most that many messages.")] = None,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Send a subscription's dead letters back to it, and to it alone; their attempts start again."""
    from sealane.cli.progress import progress_bar
    from sealane.node.redrive import RedriveReport

    waiting = ask(url, data, lambda lane: _waiting(lane, topic, subscription))
    if waiting and not dry_run:
        confirm(f"Send dead letters of {topic} back to {subscription}, of {waiting:,} that wait?", yes=yes)
    expected = None if filter is not None else waiting if messages_max is None else min(waiting, messages_max)
    with progress_bar("redriving", "messages") as progress:

        async def work(lane: Lane) -> RedriveReport:
            return await lane.redrive(
                topic,
                subscription,
                filter=filter,
                dry_run=dry_run,
                rate=rate,
                messages_max=messages_max,
                progress=lambda done: progress(done, expected),
            )

        report = ask(url, data, work) if waiting else RedriveReport(dry_run)
    _tell(report, subscription, as_json=as_json)


def _tell(report: RedriveReport, subscription: str, *, as_json: bool) -> None:
    if as_json:
        write_json({"dry_run": report.dry_run, "messages": report.messages, "reasons": dict(report.reasons)})
        return
    done = "would go" if report.dry_run else "are" if report.messages != 1 else "is"
    typer.echo(f"{report.messages:,} {'message' if report.messages == 1 else 'messages'} {done} back to {subscription}")
    if report.reasons:
        show_table(
            ["reason", ">messages"], [(why, f"{many:,}") for why, many in report.reasons.most_common()], empty=""
        )


def dead_letters_of(topics: list[TopicDescription]) -> list[DeadLetters]:
    """Of all subscriptions in these topics that have any."""
    from sealane.node.dead_letters import dead_topic_name

    owners = {
        dead_topic_name(topic.name, reader.name): (topic.name, reader.name)
        for topic in topics
        for reader in topic.subscriptions
    }
    found = []
    for topic in topics:
        if topic.redrive is None or not topic.redrive.depth:
            continue
        origin, subscription = owners.get(topic.name, (topic.name.removesuffix(_ENDING), None))
        found.append(DeadLetters(origin, subscription, topic.name, topic.redrive.depth))
    return found


async def _dead_topic(lane: Lane, topic: str, subscription: str) -> TopicDescription | None:
    """Where a subscription's dead letters are; None if nothing has died yet."""
    from sealane.errors import TopicNotFound
    from sealane.node.dead_letters import dead_topic_name

    origin = await lane.describe_topic(topic)
    try:
        return await lane.describe_topic(dead_topic_name(origin.name, subscription))
    except TopicNotFound:
        return None


async def _waiting(lane: Lane, topic: str, subscription: str) -> int:
    """How many dead letters a subscription has."""
    find_subscription(await lane.describe_topic(topic), subscription)
    dead = await _dead_topic(lane, topic, subscription)
    return 0 if dead is None or dead.redrive is None else dead.redrive.depth


async def _look(lane: Lane, topic: str, subscription: str, count: int) -> list[StoredMessage]:
    from sealane.cli.peeking import stored_messages

    dead = await _dead_topic(lane, topic, subscription)
    found: list[StoredMessage] = []
    if dead is None or dead.redrive is None or not dead.redrive.depth:
        return found
    async for some in stored_messages(lane, dead, dead.redrive.positions):
        found.extend(some[: count - len(found)])
        if len(found) >= count:
            break
    return found


class Story:
    """Why a message is a dead letter, as its headers tell it."""

    def __init__(self, message: StoredMessage) -> None:
        from sealane.node.dead_letters import PREFIX

        self._message = message
        told = {name.removeprefix(PREFIX): value for name, value in message.headers.items() if name.startswith(PREFIX)}
        self._headers = {name: value for name, value in message.headers.items() if not name.startswith(PREFIX)}
        self.reason = told.get("reason", "")
        self.attempts = _number(told.get("attempts"))
        self.origin = f"{told.get('topic', '?')}:{told.get('partition', '?')}@{told.get('offset', '?')}"
        time_us = _number(told.get("time"))
        self.died = None if time_us is None else datetime.fromtimestamp(time_us / 1e6, UTC)
        self._told = told

    def row(self) -> tuple[object, ...]:
        message = self._message
        text = message.payload[: 4 * _PREVIEW_CHARS].decode(errors="backslashreplace")
        preview = plain(text).replace("\n", "\\n")
        return (
            f"{message.partition}@{message.offset}",
            "" if self.died is None else self.died.astimezone().strftime("%Y-%m-%d %H:%M:%S"),
            self.attempts,
            self.reason,
            self.origin,
            None if message.key is None else message.key.decode(errors="backslashreplace"),
            preview if len(preview) <= _PREVIEW_CHARS else preview[: _PREVIEW_CHARS - 1] + "…",
        )

    def as_object(self) -> dict[str, Any]:
        from sealane.cli.shapes import message_object

        return {
            **message_object(self._message),
            "headers": self._headers,
            "reason": self.reason,
            "attempts": self.attempts,
            "died": None if self.died is None else self.died.isoformat(),
            "origin": {
                "topic": self._told.get("topic"),
                "subscription": self._told.get("subscription"),
                "partition": _number(self._told.get("partition")),
                "offset": _number(self._told.get("offset")),
            },
        }


def _number(text: str | None) -> int | None:
    return int(text) if text is not None and text.isdecimal() else None
