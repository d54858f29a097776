"""The doors of a node, as someone sees them who means no good: how a conversation begins, and half of what follows."""

from __future__ import annotations

import socket
import struct
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from sealane.doors.frames.framing import framed
from tests.fuzz.conversation import CONVERSATION, HELLO

SOCKET_SECONDS = 60.0
_RESET = struct.pack("ii", 1, 0)
"""A socket that is closed with this is gone at once, without a good-bye to its peer."""


@dataclass(frozen=True)
class AttackedDoor:
    name: str
    door: str
    """Which of the node's doors it is."""
    begin: bytes
    """What a client says first."""
    half: bytes
    """The beginning of a frame whose rest never comes."""
    sound: bytes
    """What is answered, whoever says it."""


def _http(path: str, *heads: str, method: str = "GET") -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "host: localhost", *heads, "", ""]).encode()


_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\x04" + bytes(5)
"""How HTTP/2 begins, with settings that say nothing."""
_UPGRADE = _http(
    "/api/v1/ws",
    *("connection: Upgrade", "upgrade: websocket", "sec-websocket-version: 13"),
    *("sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==", "sec-websocket-protocol: sealane.v1.json"),
)
_PUBLISH = _http("/api/v1/domains/default/topics/t/messages", "content-length: 100000", method="POST")

DOORS = (
    AttackedDoor("native", "native", HELLO, CONVERSATION[2][:-40], HELLO),
    AttackedDoor("http", "http", b"", _PUBLISH + b'{"payload": "', _http("/health")),
    AttackedDoor("websocket", "http", _UPGRADE, b"\x81\xfe\x7f\xff" + bytes(40), _UPGRADE),
    AttackedDoor("grpc", "grpc", _PREFACE, b"\x00\x10\x00\x01\x04\x00\x00\x00\x01\x82", _PREFACE),
    AttackedDoor("frames", "frames", framed([b"PRODUCER"]), b"\x00\x01\x00\x00xx", framed([b"NOBODY"])),
    AttackedDoor("cipher", "cipher", b"declare_queue q\n", b'publish e k {"message_id": "', b"declare_queue q\n"),
)


def connected(address: str) -> socket.socket:
    host, _, port = address.rpartition(":")
    return socket.create_connection((host, int(port)), SOCKET_SECONDS)


def flood(address: str, said: bytes, *, opens: int, at_once: int) -> None:
    """Open so many connections, each of which says something, or nothing, and goes without a word."""
    opened: deque[socket.socket] = deque()
    for number in range(opens):
        opened.append(connected(address))
        if number % 2:
            _say(opened[-1], said)
        if len(opened) >= at_once:
            _go(opened.popleft(), reset=number % 3 > 0)
    while opened:
        _go(opened.popleft(), reset=True)


def trickle(address: str, said: bytes, *, senders: int, go_on: Callable[[int], bool]) -> int:
    """Hold connections that say a byte now and then. `go_on` waits for the next turn, and tells whether there is one.

    How many bytes each had said.
    """
    opened = [connected(address) for _ in range(senders)]
    turn = 0
    while go_on(turn):
        for each in opened:
            _say(each, said[turn % len(said) : turn % len(said) + 1])
        turn += 1
    for each in opened:
        _go(each, reset=False)
    return turn


def cut_off(address: str, begin: bytes, half: bytes, *, times: int) -> None:
    """Begin soundly, say half of something, and go."""
    for number in range(times):
        opened = connected(address)
        _say(opened, begin + half)
        _go(opened, reset=number % 2 > 0)


def answer(address: str, said: bytes) -> bytes:
    """The first bytes that the door says to this."""
    with connected(address) as opened:
        opened.sendall(said)
        return opened.recv(4_096)


def _say(opened: socket.socket, said: bytes) -> None:
    try:
        opened.sendall(said)
    except OSError:
        pass  # The node has refused it already: there are too many, or it takes too long.


def _go(opened: socket.socket, *, reset: bool) -> None:
    try:
        if reset:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    except OSError:
        pass
    opened.close()
