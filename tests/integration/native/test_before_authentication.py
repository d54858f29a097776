"""What strangers can make a node keep: little for each connection, whatever they send, and not for long."""

from __future__ import annotations

import os
import socket
import ssl
import struct
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from sealane.client.profiles import read_profile
from sealane.testing.node_process import NodeProcess
from sealane.wire.connection import HANDSHAKE_SECONDS_MAX
from sealane.wire.frames import HELLO_BYTES_MAX

CONNECTIONS = 400
WARM_UP = 20
"""Connections before it is measured: the first of a kind make the node load and keep what all of them share."""
STRANGER_BYTES_MAX = 64 << 10
SECONDS_MAX = 0.8 * HANDSHAKE_SECONDS_MAX
"""The node cuts strangers off after a while, and cannot be measured then: fewer connections are as good."""
DEADLINE_SECONDS = 60

Stranger = Callable[[tuple[str, int], ssl.SSLContext], socket.socket]


def silent(address: tuple[str, int], tls: ssl.SSLContext) -> socket.socket:
    return socket.create_connection(address, DEADLINE_SECONDS)


def half_a_client_hello(address: tuple[str, int], tls: ssl.SSLContext) -> socket.socket:
    """One that is as long as may be, and misses its end."""
    stranger = socket.create_connection(address, DEADLINE_SECONDS)
    hello = b"\x01" + (15_000).to_bytes(3) + b"\x03\x03" + bytes(14_000)
    stranger.sendall(struct.pack("!BHH", 22, 0x0301, len(hello)) + hello)
    return stranger


def nothing_after_the_tls_handshake(address: tuple[str, int], tls: ssl.SSLContext) -> socket.socket:
    return tls.wrap_socket(socket.create_connection(address, DEADLINE_SECONDS), server_hostname=address[0])


def half_a_hello_and_half_a_record(address: tuple[str, int], tls: ssl.SSLContext) -> socket.socket:
    """All that may be said before the gate, in the way that takes the most."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = tls.wrap_bio(incoming, outgoing, server_hostname=address[0])
    stranger = socket.create_connection(address, DEADLINE_SECONDS)
    while True:
        try:
            client.do_handshake()
            break
        except ssl.SSLWantReadError:
            stranger.sendall(outgoing.read())
            incoming.write(stranger.recv(65_536))
    announced = HELLO_BYTES_MAX - 8
    client.write(struct.pack("<II", announced, announced - 100) + bytes(announced - 1_000))
    said = outgoing.read()
    client.write(bytes(16_000))
    stranger.sendall(said + outgoing.read()[:-100])
    return stranger


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    with NodeProcess.secure(tmp_path / "data") as started:
        yield started


def resident_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def address_of(node: NodeProcess) -> tuple[str, int]:
    host, _, port = node.doors["native"].rpartition(":")
    return host, int(port)


def trusting(node: NodeProcess) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=read_profile(node.profile).ca)


def settled(node: NodeProcess) -> int:
    """What the node has resident once it has done all that it was given to do."""
    before, since = resident_bytes(node.pid), time.monotonic()
    deadline = since + DEADLINE_SECONDS
    while time.monotonic() - since < 0.1 and time.monotonic() < deadline:
        time.sleep(0.01)
        if (now := resident_bytes(node.pid)) != before:
            before, since = now, time.monotonic()
    return before


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="resident memory is read from /proc")
@pytest.mark.parametrize(
    "stranger",
    [silent, half_a_client_hello, nothing_after_the_tls_handshake, half_a_hello_and_half_a_record],
    ids=lambda stranger: stranger.__name__,
)
def test_a_stranger_takes_little_memory(node: NodeProcess, stranger: Stranger) -> None:
    address, tls = address_of(node), trusting(node)
    for _ in range(WARM_UP):
        stranger(address, tls).close()
    before = settled(node)
    held: list[socket.socket] = []
    stop = time.monotonic() + SECONDS_MAX
    while len(held) < CONNECTIONS and time.monotonic() < stop:
        held.append(stranger(address, tls))
    each = (settled(node) - before) / len(held)
    for connection in held:
        connection.close()

    print(f"{stranger.__name__}: {each / 1024:.1f} KiB each of {len(held)}")
    assert len(held) > CONNECTIONS / 10
    assert each < STRANGER_BYTES_MAX


@pytest.mark.slow
def test_a_stranger_is_cut_off_after_a_while(node: NodeProcess) -> None:
    strangers = (silent, nothing_after_the_tls_handshake)
    with ThreadPoolExecutor(len(strangers)) as threads:
        took = list(threads.map(lambda stranger: seconds_until_cut_off(node, stranger), strangers))

    assert min(took) > HANDSHAKE_SECONDS_MAX - 1
    assert max(took) < HANDSHAKE_SECONDS_MAX + 5


def seconds_until_cut_off(node: NodeProcess, stranger: Stranger) -> float:
    began = time.monotonic()
    with stranger(address_of(node), trusting(node)) as connection:
        try:
            while connection.recv(65_536):
                """A goodbye."""
        except (ConnectionError, ssl.SSLError):
            """As good as a close."""
    return time.monotonic() - began
