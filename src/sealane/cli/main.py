"""The `sealane` command."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from sealane._version import __version__
from sealane.cli.later import Later, LaterGroup

# Nothing here solves equations. The library by which numpy does starts a thread for each core as soon as it is loaded,
# and each of them spins for a tenth of a second: a third of what a command takes to start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

_NODE, _MESSAGES, _TOPICS = "The node", "Messages", "Topics, subscriptions, exchanges"
_IDENTITY = "Identities, and what they may do"

COMMANDS = (
    Later("up", "sealane.cli.up:up", "Run a node until Ctrl-C or SIGTERM, and say where its doors are.", _NODE),
    Later("config", "sealane.cli.config:config", "Settings: what a node started here would run with, and why.", _NODE),
    Later("status", "sealane.cli.status:status_command", "Show how a node is doing.", _NODE),
    Later(
        "top",
        "sealane.cli.top:top_command",
        "Watch a node live: rates, depths, ages, leases, dead letters.",
        _NODE,
    ),
    Later("healthy", "sealane.cli.healthy:healthy_command", "Ask whether the node of a data directory serves.", _NODE),
    Later(
        "bench",
        "sealane.cli.bench:bench_command",
        "Measure a node with messages of its own: in batches, one at a time, and latency.",
        _NODE,
    ),
    Later(
        "log",
        "sealane.cli.log:log",
        "A data directory from outside: list, check, export, back up, restore. All but restore only read.",
        _NODE,
    ),
    Later(
        "pipeline",
        "sealane.cli.pipeline:pipeline_commands",
        "The data pipeline: run it, look at it, ask its tables, prove deliveries.",
        _NODE,
    ),
    Later(
        "publish",
        "sealane.cli.publish:publish_command",
        "Publish messages to a topic, and end when they are durable.",
        _MESSAGES,
    ),
    Later(
        "consume",
        "sealane.cli.consume:consume_command",
        "Write a subscription's messages to standard output, and acknowledge each once it is written.",
        _MESSAGES,
    ),
    Later(
        "dlq",
        "sealane.cli.dead_letters:dead_letter_commands",
        "Dead letters: what subscriptions gave up, why, and its way back.",
        _MESSAGES,
    ),
    Later(
        "cipher",
        "sealane.cli.cipher:cipher_commands",
        "Send and receive by CipherMQ's protocol, encrypted end to end.",
        _MESSAGES,
    ),
    Later("topic", "sealane.cli.topics:topic_commands", "Make, list, look at, change and delete topics.", _TOPICS),
    Later(
        "subscription",
        "sealane.cli.subscriptions:subscription_commands",
        "List, look at, move and delete subscriptions.",
        _TOPICS,
    ),
    Later("exchange", "sealane.cli.exchanges:exchange_commands", "Route by key: exchanges and bindings.", _TOPICS),
    Later(
        "schema",
        "sealane.cli.schemas:schema_commands",
        "Schemas: what payloads of topics look like, in versions.",
        _TOPICS,
    ),
    Later(
        "webhook",
        "sealane.cli.webhooks:webhook_commands",
        "Webhooks: push a subscription's messages to a URL.",
        _TOPICS,
    ),
    Later(
        "ca",
        "sealane.cli.ca:ca_commands",
        "Certificates: issue, renew and revoke them by the node's own authority.",
        _IDENTITY,
    ),
    Later(
        "recipient",
        "sealane.cli.recipients:recipient_commands",
        "Keys that messages are sealed for, end to end.",
        _IDENTITY,
    ),
    Later("key", "sealane.cli.keys:key_commands", "API keys of programs, and the keys of data.", _IDENTITY),
    Later("user", "sealane.cli.users:user_commands", "People who come in by a password.", _IDENTITY),
    Later(
        "account",
        "sealane.cli.accounts:account_commands",
        "Whom the node knows: make, list, look at, disable, enable, give roles.",
        _IDENTITY,
    ),
    Later(
        "quota",
        "sealane.cli.quotas:quota_commands",
        "Quotas: how much principals and domains may do a second.",
        _IDENTITY,
    ),
    Later("grant", "sealane.cli.grants:grant_commands", "Say what principals and roles may do.", _IDENTITY),
    Later(
        "audit",
        "sealane.cli.audit:audit_commands",
        "The audit log: who came in, was refused, and changed what.",
        _IDENTITY,
    ),
    Later(
        "login",
        "sealane.cli.login:login_command",
        "Log in to a node with a user's password, and keep what is needed to come back as a profile.",
        _IDENTITY,
    ),
    Later(
        "profile",
        "sealane.cli.profiles:profile_commands",
        "Profiles: where nodes are, whom to trust there, and who is asking.",
        _IDENTITY,
    ),
)
"""In the order in which the help lists them; each module is loaded when its command is used."""


class Sealane(LaterGroup):
    table = COMMANDS


app = typer.Typer(
    name="sealane",
    cls=Sealane,
    no_args_is_help=True,
    # A traceback with local variables would show payloads and keys.
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"sealane {__version__}")
        raise typer.Exit


@app.callback()
def sealane(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version, and end.")
    ] = False,
) -> None:
    """Sealane: a message broker whose queues are tables."""
