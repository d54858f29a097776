"""`sealane healthy`: whether the node on this machine serves, for those who ask every few seconds.

A container engine and a service manager do. So it loads neither Arrow nor the client, shows no credential, and leaves
no trace in the audit log: it asks the http door for `/ready`, and knows the node by the authority in its data.
"""

from __future__ import annotations

import http.client
import json
import ssl
import time
from pathlib import Path
from typing import Annotated

import typer

from sealane.cli.group import fail
from sealane.cli.options import DEFAULT_DATA, DURATION, Data, seconds
from sealane.cli.output import examples

NODE_FILE = "node.json"
"""What the node says of itself once all its doors answer, in its data directory."""
AUTHORITY_FILE = "identity/ca.crt"
"""Who has issued the node's certificate, in the same place."""
ANSWER_SECONDS = 4.0
"""How long one question may take: less than those who ask give it by default."""
PAUSE_SECONDS = 0.2
"""Between two questions of `--wait`."""

healthy_command = typer.Typer()


@healthy_command.command(
    name="healthy",
    epilog=examples(
        "sealane healthy",
        "sealane healthy --data /var/lib/sealane --wait 5m",
    ),
)
def healthy(
    wait: Annotated[
        float,
        typer.Option("--wait", parser=seconds, metavar=DURATION, help="How long it may take until it serves."),
    ] = 0.0,
    data: Data = DEFAULT_DATA,
) -> None:
    """Ask whether the node of a data directory serves. Ends with 1, and why, when it does not.

    It needs the node's http door, and no credential: `sealane status` tells more to those who have one.
    """
    deadline = time.monotonic() + wait
    problem = problem_of(data)
    while problem is not None and time.monotonic() < deadline:
        time.sleep(PAUSE_SECONDS)
        problem = problem_of(data)
    if problem is not None:
        fail(problem)
    typer.echo("ready")


def problem_of(data: Path) -> str | None:
    """Why the node of this data directory does not serve; None if it does."""
    try:
        said = json.loads((data / NODE_FILE).read_bytes())
        address, insecure = said["doors"].get("http"), said["insecure"]
    except (FileNotFoundError, NotADirectoryError):
        return f"no node serves from {str(data)!r}: it is starting, or does not run"
    except OSError as error:
        return f"{str(data / NODE_FILE)!r} cannot be read: {error.strerror}; ask as the node's own user"
    except (ValueError, LookupError, AttributeError, TypeError):
        return f"{str(data / NODE_FILE)!r} is not what a node writes; remove it, and restart the node"
    if address is None:
        return "the node has no http door to ask; turn doors.http.enabled on, or ask by `sealane status`"
    authority = None if insecure else data / AUTHORITY_FILE
    if authority is not None and not authority.is_file():
        return f"{str(authority)!r} is missing, by which the node is known; restart the node, which writes it"
    try:
        status, body = _ask(address, authority)
    except (OSError, http.client.HTTPException) as error:
        return f"the node does not answer at {address}: {error or type(error).__name__}"
    return None if status == http.client.OK else f"the node does not serve: {_detail(body, status)}"


def _ask(address: str, authority: Path | None) -> tuple[int, bytes]:
    """What the http door answers to `/ready`; it speaks TLS if there is an authority to know it by."""
    connection = http.client.HTTPConnection(address, timeout=ANSWER_SECONDS)
    if authority is not None:
        context = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(address, timeout=ANSWER_SECONDS, context=context)
    try:
        connection.request("GET", "/ready", headers={"connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def _detail(body: bytes, status: int) -> str:
    """What a problem document says in a sentence."""
    try:
        return str(json.loads(body)["detail"])
    except (ValueError, LookupError, TypeError):
        return f"it answers {status}"
