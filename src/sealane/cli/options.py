"""Options and arguments that many commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.completing import complete_exchange, complete_subscription, complete_topic
from sealane.cli.connecting import DEFAULT_DATA as DEFAULT_DATA
from sealane.cli.durations import parse_seconds

_CONNECTION = "Connection"

Url = Annotated[
    str | None,
    typer.Option(
        "--url",
        envvar="SEALANE_URL",
        show_default=False,
        rich_help_panel=_CONNECTION,
        help="The node, such as sealane://127.0.0.1:7070. Default: the one of the data directory.",
    ),
]
Data = Annotated[
    Path,
    typer.Option(
        "--data", envvar="SEALANE_DATA", rich_help_panel=_CONNECTION, help="The data directory of the node to ask."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Write JSON, for programs.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]

Topic = Annotated[
    str, typer.Argument(metavar="TOPIC", autocompletion=complete_topic, help="The topic: `name` or `domain/name`.")
]
Subscription = Annotated[
    str, typer.Argument(metavar="SUBSCRIPTION", autocompletion=complete_subscription, help="The subscription's name.")
]
Exchange = Annotated[
    str,
    typer.Argument(metavar="EXCHANGE", autocompletion=complete_exchange, help="The exchange: `name` or `domain/name`."),
]

seconds = parse_seconds
DURATION = "DURATION"
"""How the help calls what `parse_seconds` reads."""
