"""`sealane bench`: what this node does for this client, measured in a few seconds."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from sealane.cli.connecting import ask
from sealane.cli.durations import rate, size
from sealane.cli.options import DEFAULT_DATA, DURATION, AsJson, Data, Url, seconds
from sealane.cli.output import examples, show_table, write_json

bench_command = typer.Typer()


@bench_command.command(
    name="bench",
    epilog=examples(
        "sealane bench",
        "sealane bench --messages 1000000 --bytes 1024 --batch 1000",
        "sealane bench --json | jq .latency.publish_ms",
    ),
)
def bench(
    messages: Annotated[int, typer.Option("--messages", "-n", min=1, help="How many in batches; a tenth singly.")] = (
        200_000
    ),
    payload_bytes: Annotated[int, typer.Option("--bytes", "-b", min=1, help="The size of a payload.")] = 100,
    batch: Annotated[int, typer.Option("--batch", min=1, help="Messages in a batch.")] = 5_000,
    per_second: Annotated[
        float, typer.Option("--rate", min=1, help="Single publishes a second while latency is measured.")
    ] = 500,
    lasting: Annotated[
        float, typer.Option("--latency-for", parser=seconds, metavar=DURATION, help="How long to measure latency.")
    ] = 2.0,
    as_json: AsJson = False,
    url: Url = None,
    data: Data = DEFAULT_DATA,
) -> None:
    """Measure a node with messages of its own: in batches, one at a time, and latency.

    Everything goes through a topic named bench-…, which is deleted at the end. Publisher and consumer are this one
    process; the figures are of this machine in this moment.
    """
    from sealane.cli.measuring import Measuring
    from sealane.cli.progress import progress_bar

    topic = f"bench-{os.urandom(4).hex()}"
    with progress_bar("measuring", "messages") as progress:
        result = ask(
            url,
            data,
            lambda lane: Measuring(lane, topic, os.urandom(payload_bytes), progress).run(
                messages=messages, batch=batch, per_second=per_second, lasting=lasting
            ),
        )
    if as_json:
        write_json(result)
    else:
        _show(result)


def _show(result: dict[str, Any]) -> None:
    show_table(
        ["durable messages", ">messages", ">published", ">received and acked", ">payload a second"],
        [
            (
                name,
                f"{found['messages']:,}",
                rate(found["published_per_second"]),
                rate(found["acked_per_second"]),
                size(found["bytes_per_second"]),
            )
            for name, found in (("in batches", result["batches"]), ("one at a time", result["singles"]))
        ],
        empty="",
    )
    latency = result["latency"]
    show_table(
        [f"latency at {latency['per_second']:,.0f}/s", ">p50", ">p95", ">p99", ">max"],
        [
            (name, *(f"{latency[key][each]:.2f} ms" for each in ("p50", "p95", "p99", "max")))
            for name, key in (("publish → durable", "publish_ms"), ("publish → received", "receive_ms"))
        ],
        empty="",
    )
