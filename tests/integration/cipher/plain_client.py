"""A client of CipherMQ as people write them: a blocking socket, a line for a line. Nothing of Sealane is in it."""

from __future__ import annotations

import json
import socket
import ssl
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

TIMEOUT_SECONDS = 20.0


class PlainClient:
    def __init__(self, address: str, *, tls: ssl.SSLContext | None = None) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout=TIMEOUT_SECONDS)
        if tls is not None:
            self.socket = tls.wrap_socket(self.socket, server_hostname=host)
        self._file = self.socket.makefile("rb")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        self._file.close()
        self.socket.close()

    # --- lines --------------------------------------------------------------------------------------------------------

    def send(self, *lines: str) -> None:
        """In one packet, if they fit."""
        self.socket.sendall("".join(f"{line}\n" for line in lines).encode())

    def line(self) -> str:
        """The next that comes. Raises `EOFError` if the connection ended."""
        line = self._file.readline()
        if not line.endswith(b"\n"):
            raise EOFError(f"the connection ended, after {line!r}")
        return line[:-1].decode()

    def lines(self, count: int) -> list[str]:
        return [self.line() for _ in range(count)]

    def rest(self) -> str:
        """Everything until the connection ends."""
        return self._file.read().decode()

    def ask(self, line: str) -> str:
        """Send a command, and read one reply."""
        self.send(line)
        return self.line()

    # --- what a program does with it ----------------------------------------------------------------------------------

    def make_queue(self, queue: str, exchange: str = "", key: str = "key") -> None:
        exchange = exchange or f"{queue}-exchange"
        assert self.ask(f"declare_queue {queue}") == "Queue declared"
        assert self.ask(f"declare_exchange {exchange}") == "Exchange declared"
        assert self.ask(f"bind {queue} {exchange} {key}") == "Queue bound"

    def publish(self, queue: str, *messages: dict[str, str]) -> None:
        """One by one, to a queue that `make_queue` has made."""
        for message in messages:
            reply = self.ask(f"publish {queue}-exchange key {json.dumps(message)}")
            assert reply == f"ACK {message['message_id']}", reply

    def publish_batch(self, queue: str, messages: Sequence[dict[str, str]]) -> None:
        self.send(f"publish_batch {queue}-exchange key {json.dumps(messages)}")
        assert self.lines(len(messages)) == [f"ACK {message['message_id']}" for message in messages]

    def consume(self, queue: str) -> None:
        assert self.ask(f"consume {queue}") == f"Consuming {queue}"

    def message(self) -> dict[str, Any]:
        """The next that is pushed."""
        return message_of(self.line())

    def messages(self, count: int) -> list[dict[str, Any]]:
        return [self.message() for _ in range(count)]

    def ack(self, message_id: str) -> None:
        """And read one reply, which must be its confirmation."""
        assert self.ask(f"ack {message_id}") == f"ACK_CONFIRMED {message_id}"

    def fetch(self, queue: str) -> dict[str, Any] | None:
        line = self.ask(f"fetch {queue}")
        return None if line == f"No message in {queue}" else message_of(line)


def message_of(line: str) -> dict[str, Any]:
    kind, message_id, text = line.split(" ", 2)
    found: dict[str, Any] = json.loads(text)
    assert (kind, message_id) == ("Message:", found["message_id"]), line
    return found
