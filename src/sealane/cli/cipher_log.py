"""What `sealane cipher send` and `receive` say while they work, a line for each thing that happens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from sealane.cipher.events import (
    Acknowledged,
    Acknowledging,
    Arrived,
    Confirmed,
    Connected,
    Disconnected,
    Event,
    Repeated,
    Retrying,
    Sending,
    Stored,
    Unconfirmed,
    Undecryptable,
)
from sealane.cli.output import plain, write_json_line


class CipherLog:
    """Says what happens: as lines for people, as JSON, or by a progress bar alone. What is wrong is always said, on
    standard error. Nothing that was encrypted is in any line.
    """

    def __init__(self, *, as_json: bool, quiet: bool) -> None:
        self._as_json = as_json
        self._quiet = quiet
        self._done = 0
        self._progress: Callable[[int], None] = lambda done: None

    @contextmanager
    def progressing(self, title: str, unit: str, total: int | None) -> Iterator[None]:
        """Show how far it is, where lines do not."""
        if not self._quiet or self._as_json:
            yield
            return
        from sealane.cli.progress import progress_bar

        with progress_bar(title, unit) as show:
            self._progress = lambda done: show(done, total)
            yield

    def tell(self, event: Event) -> None:
        trouble = _trouble(event)
        if trouble is not None:
            typer.echo(plain(trouble), err=True)
        elif self._as_json:
            self._tell_json(event)
        elif not self._quiet:
            typer.echo(plain(_line(event)))
        if isinstance(event, Acknowledged | Stored):
            self._done += 1
            self._progress(self._done)

    def _tell_json(self, event: Event) -> None:
        if isinstance(event, Acknowledged):
            write_json_line({"message_id": event.message_id, "acknowledged": True})
        elif isinstance(event, Stored):
            typer.echo(event.entry.written())


def _trouble(event: Event) -> str | None:
    """What a person may have to do something about."""
    match event:
        case Retrying(waiting, attempt, why):
            return f"[SENDER] No ACK: {why}; {waiting:,} pending, try {attempt}"
        case Disconnected(why):
            return f"[RECEIVER] Connection lost: {why}; connecting again"
        case Undecryptable(message_id, reason):
            return f"[RECEIVER] Message {message_id} cannot be decrypted, and is not acknowledged: {reason}"
        case Unconfirmed(message_id, why):
            return f"[RECEIVER] Server refused ACK for message {message_id}, which will come again: {why}"
    return None


def _line(event: Event) -> str:
    match event:
        case Sending(message_id, attempt):
            return f"[SENDER] Sending message {message_id}{_try(attempt)}"
        case Acknowledged(message_id):
            return f"[SENDER] Server ACK received for message {message_id}"
        case Connected(address):
            return f"[RECEIVER] Connected to {address}"
        case Arrived(message_id):
            return f"[RECEIVER] Received message {message_id}"
        case Stored(entry):
            return f"[RECEIVER] Decrypted and stored message {entry.message_id}"
        case Repeated(message_id):
            return f"[RECEIVER] Message {message_id} is stored already"
        case Acknowledging(message_id, attempt):
            return f"[RECEIVER] Sending ACK for message {message_id}{_try(attempt)}"
        case Confirmed(message_id):
            return f"[RECEIVER] Server confirmed ACK for message {message_id}"
    raise AssertionError(event)


def _try(attempt: int) -> str:
    return "" if attempt == 1 else f" (try {attempt})"
