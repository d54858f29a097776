"""The frames door in queue mode: from a producer's socket, by way of the disk, to a consumer's socket."""

from __future__ import annotations

import os
import socket
import struct
import threading
import time
from pathlib import Path

from sealane.testing.node_process import NodeProcess

HEAD = struct.Struct(">I")
WARM_SECONDS = 0.5
LONGEST_SECONDS = 60.0
"""Nothing here waits for longer."""


def rate(directory: Path, *, seconds: float, size: int, batch: int) -> float:
    """Frames a second that arrive at one consumer, of one producer that writes `batch` of them at a time. A frame is
    durable before it is delivered.
    """
    settings = {"doors.frames.enabled": "on", "doors.frames.port": 0, "doors.frames.mode": "queue"}
    with NodeProcess(directory / "data", settings) as node:
        address = node.doors["frames"]
        with _connected(address, b"CONSUMER") as consumer, _connected(address, b"PRODUCER") as producer:
            stop = threading.Event()
            frames = b"".join(HEAD.pack(size) + os.urandom(size) for _ in range(batch))
            sending = threading.Thread(target=_send, args=(producer, frames, stop))
            sending.start()
            try:
                return _received_bytes_a_second(consumer, seconds) / (HEAD.size + size)
            finally:
                stop.set()
                producer.shutdown(socket.SHUT_RDWR)
                sending.join()


def _connected(address: str, role: bytes) -> socket.socket:
    host, _, port = address.rpartition(":")
    opened = socket.create_connection((host, int(port)), LONGEST_SECONDS)
    opened.sendall(HEAD.pack(len(role)) + role)
    return opened


def _send(producer: socket.socket, frames: bytes, stop: threading.Event) -> None:
    try:
        while not stop.is_set():
            producer.sendall(frames)
    except OSError:
        assert stop.is_set(), "the node has ended the connection"


def _received_bytes_a_second(consumer: socket.socket, seconds: float) -> float:
    """From half a second after the first ones have come."""
    _received_bytes(consumer, 0.0)
    _received_bytes(consumer, WARM_SECONDS)
    begin = time.perf_counter()
    return _received_bytes(consumer, seconds) / (time.perf_counter() - begin)


def _received_bytes(consumer: socket.socket, seconds: float) -> int:
    """What comes until so much time has passed, and at least once."""
    buffer = bytearray(1 << 20)
    received, stop = 0, time.perf_counter() + seconds
    while not received or time.perf_counter() < stop:
        count = consumer.recv_into(buffer)
        assert count, "the node has ended the connection"
        received += count
    return received
