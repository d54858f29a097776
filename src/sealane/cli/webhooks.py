"""`sealane webhook …`: subscriptions whose messages the node pushes to a URL."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from sealane.cli.completing import complete_topic
from sealane.cli.connecting import ask
from sealane.cli.durations import duration
from sealane.cli.group import SealaneGroup
from sealane.cli.moments import moment
from sealane.cli.options import DEFAULT_DATA, DURATION, AsJson, Data, Subscription, Topic, Url, Yes, seconds
from sealane.cli.output import confirm, examples, show_facts, show_table, write_json

webhook_commands = typer.Typer(
    cls=SealaneGroup, no_args_is_help=True, help="Webhooks: push a subscription's messages to a URL."
)

KEEP_SECRET = "keep it where only the receiver reads it: it is not shown again"  # noqa: S105 - a hint, and no secret


@webhook_commands.command(
    epilog=examples(
        "sealane webhook create orders billing https://hooks.example.com/orders",
        "sealane webhook create orders audit https://hooks.example.com/audit --messages-max 100 --timeout 30s",
        "sealane webhook create orders late https://hooks.example.com/late --start latest --attempts 5",
    )
)
def create(
    topic: Topic,
    subscription: Subscription,
    target: Annotated[str, typer.Argument(metavar="URL", help="Where to: https, and a host of webhooks.hosts.")],
    messages_max: Annotated[int, typer.Option("--messages-max", help="Messages of one request, up to 100.")] = 1,
    timeout: Annotated[
        float, typer.Option("--timeout", parser=seconds, metavar=DURATION, help="The receiver's time to answer.")
    ] = 15.0,
    start: Annotated[
        Literal["earliest", "latest"], typer.Option("--start", help="Where the subscription begins, if it is new.")
    ] = "earliest",
    attempts: Annotated[
        int | None,
        typer.Option("--attempts", help="Attempts of a message before it is a dead letter; of the subscription."),
    ] = None,
    retry_delay: Annotated[
        float | None,
        typer.Option(
            "--retry-delay",
            parser=seconds,
            metavar=DURATION,
            help="The first pause before a message comes again.",
        ),
    ] = None,
    retry_delay_max: Annotated[
        float | None,
        typer.Option("--retry-delay-max", parser=seconds, metavar=DURATION, help="The longest such pause."),
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Push a subscription's messages to a URL, and show the secret by which requests are signed, once."""
    wished = {"attempts_max": attempts, "delay_seconds": retry_delay, "delay_seconds_max": retry_delay_max}
    retry = {name: value for name, value in wished.items() if value is not None}
    asked: dict[str, Any] = {
        "topic": topic,
        "subscription": subscription,
        "url": target,
        "messages_max": messages_max,
        "timeout_seconds": timeout,
        "start": start,
        **({"retry": retry} if retry else {}),
    }
    made = ask(url, data, lambda lane: lane.administer("webhook.create", **asked))
    if as_json:
        write_json(made)
        return
    show_facts([("secret", made["secret"]), *_facts(made)])
    typer.echo(KEEP_SECRET, err=True)


@webhook_commands.command(
    name="list", epilog=examples("sealane webhook list", "sealane webhook list orders --json | jq '.[].state'")
)
def list_webhooks(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", autocompletion=complete_topic, help="Only those of this topic.")
    ] = None,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """List webhooks, without their secrets."""
    found = ask(url, data, lambda lane: lane.administer("webhook.list", topic=topic))
    if as_json:
        write_json(found)
        return
    show_table(
        ["topic", "subscription", "state", "breaker", ">failures", "url"],
        [
            (each["topic"], each["subscription"], each["state"], each["breaker"], each["failures"], each["url"])
            for each in found
        ],
        empty="no webhooks yet: `sealane webhook create TOPIC SUBSCRIPTION URL` makes one",
    )


@webhook_commands.command(
    epilog=examples("sealane webhook show orders billing", "sealane webhook show orders billing --json | jq .breaker")
)
def show(
    topic: Topic, subscription: Subscription, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA
) -> None:
    """Show a webhook: its state, its circuit breaker, and how its last request ended."""
    _show(_asked("show", topic, subscription, url, data), as_json)


@webhook_commands.command(epilog=examples("sealane webhook pause orders billing"))
def pause(
    topic: Topic, subscription: Subscription, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA
) -> None:
    """Push nothing until it is resumed; messages wait in the subscription."""
    done = _asked("pause", topic, subscription, url, data)
    if as_json:
        write_json(done)
        return
    typer.echo(f"the webhook of {subscription} of {topic} is paused")


@webhook_commands.command(epilog=examples("sealane webhook resume orders billing"))
def resume(
    topic: Topic, subscription: Subscription, as_json: AsJson = False, url: Url = None, data: Data = DEFAULT_DATA
) -> None:
    """Push again, under your grants from now on, and at once even if its circuit breaker was open."""
    done = _asked("resume", topic, subscription, url, data)
    if as_json:
        write_json(done)
        return
    state = "is on" if done["state"] == "on" else f"is {done['state']}: {done['reason']}"
    typer.echo(f"the webhook of {subscription} of {topic} {state}")


@webhook_commands.command(
    epilog=examples("sealane webhook rotate orders billing", "sealane webhook rotate orders billing --keep 0")
)
def rotate(
    topic: Topic,
    subscription: Subscription,
    keep: Annotated[
        float,
        typer.Option("--keep", parser=seconds, metavar=DURATION, help="How long the secret before signs too."),
    ] = 24 * 3600.0,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Make a new secret, and show it once. Requests are signed by both until the one before ends."""
    done = _asked("rotate", topic, subscription, url, data, keep_seconds=keep)
    if as_json:
        write_json(done)
        return
    before = done["secrets"][1]["ends_us"] if len(done["secrets"]) > 1 else None
    show_facts([("secret", done["secret"]), ("the one before", f"until {moment(before)}" if before else "is over")])
    typer.echo(KEEP_SECRET, err=True)


@webhook_commands.command(epilog=examples("sealane webhook remove orders billing --yes"))
def remove(
    topic: Topic,
    subscription: Subscription,
    yes: Yes = False,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Remove a webhook; the subscription stays, with what was not accepted yet."""
    confirm(f"Remove the webhook of {subscription} of {topic}, and its secret?", yes=yes)
    done = _asked("remove", topic, subscription, url, data)
    if as_json:
        write_json(done)
        return
    typer.echo(f"the webhook of {subscription} of {topic} is removed")


def _asked(command: str, topic: str, subscription: str, url: str | None, data: Any, **given: Any) -> dict[str, Any]:
    answer: dict[str, Any] = ask(
        url,
        data,
        lambda lane: lane.administer(f"webhook.{command}", topic=topic, subscription=subscription, **given),
    )
    return answer


def _show(found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        write_json(found)
        return
    show_facts(_facts(found))


def _facts(found: dict[str, Any]) -> list[tuple[str, object]]:
    last = found["last"]
    return [
        ("topic", found["topic"]),
        ("subscription", found["subscription"]),
        ("url", found["url"]),
        ("state", found["state"] + (f": {found['reason']}" if found["reason"] else "")),
        ("breaker", _breaker(found)),
        (
            "last request",
            "none yet" if last is None else f"{moment(last['time_us'])}: {last['reason'] or last['outcome']}",
        ),
        ("messages a request", f"up to {found['messages_max']}"),
        ("timeout", duration(found["timeout_seconds"])),
        ("pushed for", found["owner"]),
        ("since", moment(found["created_us"])),
    ]


def _last(request: dict[str, Any]) -> str:
    return f"{moment(request['time_us'])}: {request['reason'] or request['outcome']}"


def _breaker(found: dict[str, Any]) -> str:
    if found["breaker"] is None:
        return "nothing is pushed by this process"
    waits = f", next try in {duration(found['retry_seconds'])}" if found["retry_seconds"] else ""
    return f"{found['breaker']}, {found['failures']} failures in a row{waits}"
