"""TLS of a door, with a real client at the other end: what goes through, what is shown, and who is refused."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
import struct
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
import uvloop
from cryptography.hazmat.primitives.serialization import Encoding

from sealane.doors import tls_porch
from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import HANDSHAKE_BYTES_MAX, Inside
from sealane.doors.tls_porch import MIDWAY_MAX, TlsPorch
from sealane.security.ca.authority import Authority, Usage, Wish
from sealane.security.ca.keys import new_key, private_pem

DEADLINE_SECONDS = 30
WORD = b"this door speaks TLS"
MiB = 1 << 20


def _now_us() -> int:
    return time.time_ns() // 1_000


class Papers:
    """An authority, and the files of what it issues."""

    def __init__(self, directory: Path, name: str) -> None:
        self._directory = directory
        directory.mkdir(exist_ok=True)
        self.authority = Authority.create(name, key_type="ecdsa-p384", days=30, now_us=_now_us(), entropy=os.urandom)

    def issue(self, name: str, usage: Usage) -> tuple[Path, Path]:
        key = new_key("ecdsa-p384")
        names = ("localhost", "127.0.0.1") if usage == "server" else ()
        wish = Wish(name, key.public_key(), usage, names, 30)
        certificate = self.authority.issue(wish, _now_us(), os.urandom)
        files = self._directory / f"{name}.crt", self._directory / f"{name}.key"
        files[0].write_bytes(certificate.public_bytes(Encoding.PEM))
        files[1].write_text(private_pem(key))
        return files

    def client(self, *shown: Path) -> ssl.SSLContext:
        """Of one that shows this certificate with its key, or none."""
        context = ssl.create_default_context(cadata=self.authority.pem)
        if shown:
            context.load_cert_chain(shown[0], shown[1])
        return context


class Echo(asyncio.Protocol):
    """Sends back what it hears; `made` has every one of them."""

    def __init__(self, made: list[Inside]) -> None:
        made.append(self)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        tls = transport.get_extra_info("ssl_object")
        self.certificate = tls.getpeercert(binary_form=True)

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)  # type: ignore[attr-defined]


class BufferedEcho(asyncio.BufferedProtocol):
    """The same, into a buffer that is smaller than a TLS record."""

    def __init__(self, made: list[Inside]) -> None:
        made.append(self)
        self._buffer = memoryview(bytearray(10_000))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        half = nbytes // 2
        self.transport.writelines([self._buffer[:half], self._buffer[half:nbytes]])  # type: ignore[attr-defined]


class Door:
    def __init__(self, porch: TlsPorch, server: asyncio.Server, made: list[Inside]) -> None:
        self.porch = porch
        self.made = made
        self.address: tuple[str, int] = server.sockets[0].getsockname()

    async def connect(self, context: ssl.SSLContext | None) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection(*self.address, ssl=context, limit=MiB)


@asynccontextmanager
async def opened(
    tls: NodeTls, inside: Callable[[list[Inside]], Inside] = Echo, *, waiting_max: int = 100
) -> AsyncIterator[Door]:
    porch = TlsPorch("echo", tls, waiting_max=waiting_max, word_to_plain_text=WORD)
    made: list[Inside] = []
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: porch.connection(lambda: inside(made)), "127.0.0.1", 0)
    try:
        async with asyncio.timeout(DEADLINE_SECONDS):
            yield Door(porch, server, made)
    finally:
        server.close()
        porch.close()
        for each in made:
            each.transport.abort()  # type: ignore[union-attr]
        await until(lambda: not porch.waiting)


@pytest.fixture
def papers(tmp_path: Path) -> Papers:
    return Papers(tmp_path / "ours", "ours")


@pytest.fixture
def tls(papers: Papers) -> NodeTls:
    return NodeTls(*papers.issue("server", "server"), papers.authority.pem)


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        while not condition():  # noqa: ASYNC110 - a door has no event for it
            await asyncio.sleep(0.005)


async def hang_up(writer: asyncio.StreamWriter) -> None:
    writer.close()
    try:
        await writer.wait_closed()
    except (OSError, ssl.SSLError):
        """It was refused."""


async def echoed(door: Door, context: ssl.SSLContext, data: bytes) -> bytes:
    reader, writer = await door.connect(context)
    writer.write(data)
    answer = await reader.readexactly(len(data))
    await hang_up(writer)
    return answer


async def refusal(door: Door, context: ssl.SSLContext) -> str:
    """What a client hears that tries to say something and is not let in."""
    try:
        reader, writer = await door.connect(context)
        writer.write(b"hello")
        heard = await reader.read()
    except (ssl.SSLError, ConnectionError) as error:
        return str(error)
    await hang_up(writer)
    return f"heard {heard!r}"


# --- what goes through ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("inside", [Echo, BufferedEcho])
@pytest.mark.parametrize("size", [1, 16_384, 16_385, 5 * MiB + 7])
def test_what_is_sent_comes_back_whole(
    tls: NodeTls,
    papers: Papers,
    new_loop: Callable[[], asyncio.AbstractEventLoop],
    inside: Callable[[list[Inside]], Inside],
    size: int,
) -> None:
    data = os.urandom(size)

    async def both_ways() -> bytes:
        async with opened(tls, inside) as door:
            return await echoed(door, papers.client(), data)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        assert runner.run(both_ways()) == data


async def test_the_protocol_inside_is_told_the_clients_certificate(tls: NodeTls, papers: Papers) -> None:
    shown = papers.issue("anna", "client")
    async with opened(tls) as door:
        await echoed(door, papers.client(*shown), b"x")
        await echoed(door, papers.client(), b"x")

    assert door.made[0].certificate == ssl.PEM_cert_to_DER_cert(shown[0].read_text())  # type: ignore[union-attr]
    assert door.made[1].certificate is None  # type: ignore[union-attr]


async def test_a_close_is_said_so_that_nobody_can_cut_a_conversation_short(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client())
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
        door.made[0].transport.close()  # type: ignore[union-attr]

        assert await reader.read() == b"", "a connection that was cut would raise"
        await hang_up(writer)


async def test_no_ticket_is_handed_out_that_would_let_a_client_skip_the_look_at_its_certificate(
    tls: NodeTls, papers: Papers
) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client(*papers.issue("anna", "client")))
        writer.write(b"x")
        await reader.readexactly(1)
        session = writer.get_extra_info("ssl_object").session
        await hang_up(writer)

    assert session is None or not session.has_ticket


# --- another certificate ----------------------------------------------------------------------------------------------


async def test_a_new_certificate_is_shown_from_the_next_handshake_on_and_nobody_is_cut_off(
    tls: NodeTls, papers: Papers
) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(papers.client())
        first = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        papers.issue("server", "server")
        tls.reload(papers.authority.pem)
        _, late = await door.connect(papers.client())
        second = late.get_extra_info("ssl_object").getpeercert(binary_form=True)
        await hang_up(late)
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        await hang_up(writer)

    assert first != second


async def test_an_authority_that_is_not_trusted_any_more_lets_nobody_in(tmp_path: Path, papers: Papers) -> None:
    others = Papers(tmp_path / "others", "others")
    server = papers.issue("server", "server")
    tls = NodeTls(*server, papers.authority.pem + others.authority.pem)
    context = papers.client(*others.issue("boris", "client"))
    async with opened(tls) as door:
        assert await echoed(door, context, b"x") == b"x"
        tls.reload(papers.authority.pem)
        assert "unknown ca" in (await refusal(door, context)).lower()


async def test_a_certificate_that_cannot_be_read_leaves_the_one_before_it(tls: NodeTls, papers: Papers) -> None:
    certificate, _ = papers.issue("server", "server")
    certificate.write_text("this is none")
    with pytest.raises(ssl.SSLError):
        tls.reload(papers.authority.pem)
    async with opened(tls) as door:
        assert await echoed(door, papers.client(), b"x") == b"x"


# --- refusals ---------------------------------------------------------------------------------------------------------


async def test_refused_an_older_protocol(tls: NodeTls, papers: Papers) -> None:
    context = papers.client()
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    async with opened(tls) as door:
        assert "protocol version" in await refusal(door, context)
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_a_certificate_of_another_authority(tmp_path: Path, tls: NodeTls, papers: Papers) -> None:
    stranger = Papers(tmp_path / "theirs", "theirs").issue("anna", "client")
    async with opened(tls) as door:
        assert "unknown ca" in (await refusal(door, papers.client(*stranger))).lower()
        assert door.made == []


async def test_refused_a_servers_certificate_from_a_client(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        assert "certificate" in await refusal(door, papers.client(*papers.issue("another", "server")))
        assert door.made == []


async def test_refused_plain_text_with_a_word_that_tells_what_to_do(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(b"GET / HTTP/1.1\r\n\r\n")
        assert await reader.read() == WORD
        await hang_up(writer)
        await until(lambda: not door.porch.waiting)
        assert door.porch.connections_refused == 1
        assert await echoed(door, papers.client(), b"x") == b"x"


@pytest.mark.parametrize(
    "garbage",
    [b"\x16", b"\x16\x03" + os.urandom(600), b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\xff\xff" + bytes(70_000)],
    ids=["one byte", "noise", "no hello", "a record that is too long"],
)
async def test_refused_what_only_begins_like_tls(tls: NodeTls, papers: Papers, garbage: bytes) -> None:
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(garbage)
        writer.write_eof()
        with suppress(ConnectionError):
            await reader.read()
        await hang_up(writer)
        await until(lambda: not door.porch.waiting)
        assert door.made == []
        assert await echoed(door, papers.client(), b"x") == b"x"


@pytest.mark.parametrize("hello_bytes", [HANDSHAKE_BYTES_MAX + 1, 100_000])
async def test_refused_a_hello_that_is_announced_longer_than_any_client_needs(
    tls: NodeTls, papers: Papers, hello_bytes: int
) -> None:
    """OpenSSL would take memory for all of it, up to 128 KiB, and wait."""
    async with opened(tls) as door:
        reader, writer = await door.connect(None)
        writer.write(struct.pack("!BHH", 22, 0x0301, 500) + b"\x01" + hello_bytes.to_bytes(3) + b"\x03\x03")
        assert await reader.read() == b""
        await hang_up(writer)
        assert door.porch.connections_refused == 1
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_a_handshake_that_is_longer_than_any_client_needs(tls: NodeTls, papers: Papers) -> None:
    """Such as one with a chain of certificates that goes on and on."""
    certificate, key = papers.issue("anna", "client")
    chain = certificate.with_name("chain.pem")
    fits, longer = 10, 2 + HANDSHAKE_BYTES_MAX // len(ssl.PEM_cert_to_DER_cert(certificate.read_text()))
    async with opened(tls) as door:
        chain.write_text(fits * certificate.read_text())
        assert await echoed(door, papers.client(chain, key), b"x") == b"x"
        chain.write_text(longer * certificate.read_text())
        await refusal(door, papers.client(chain, key))
        assert door.porch.connections_refused == 1
        assert len(door.made) == 1


async def test_of_those_who_show_a_part_of_their_certificate_only_the_last_are_kept(
    tls: NodeTls, papers: Papers
) -> None:
    """OpenSSL takes memory for all that they announce."""
    context = papers.client(*papers.issue("anna", "client"))
    async with opened(tls, waiting_max=2 * MIDWAY_MAX) as door:
        halves = []
        for _ in range(MIDWAY_MAX + 1):
            reader, writer, last = await all_but_the_last_word(door, context)
            writer.write(last[: len(last) // 2])
            halves.append((reader, writer))
        with suppress(ConnectionError):
            assert await halves[0][0].read() == b""
        assert door.porch.connections_refused == 1
        assert door.porch.waiting == MIDWAY_MAX
        assert await echoed(door, context, b"x") == b"x"
        for _, writer in halves:
            writer.transport.abort()


async def all_but_the_last_word(
    door: Door, context: ssl.SSLContext
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, bytes]:
    """A handshake, and what is left to say in it."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
    reader, writer = await door.connect(None)
    await shake_hands(client, incoming, outgoing, reader, writer)
    return reader, writer, outgoing.read()


async def shake_hands(
    client: ssl.SSLObject,
    incoming: ssl.MemoryBIO,
    outgoing: ssl.MemoryBIO,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """The handshake byte by byte, but for the client's last word, which stays in `outgoing`."""
    while True:
        try:
            client.do_handshake()
            return
        except ssl.SSLWantReadError:
            for byte in outgoing.read():
                writer.write(bytes([byte]))
                await writer.drain()
            incoming.write(await reader.read(65_536))


@pytest.mark.parametrize(
    "beginning",
    [b"", b"\x16\x03\x01\x02", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"],
    ids=["nothing", "a few bytes", "half a hello"],
)
async def test_refused_a_handshake_that_takes_too_long(
    tls: NodeTls, papers: Papers, monkeypatch: pytest.MonkeyPatch, beginning: bytes
) -> None:
    monkeypatch.setattr(tls_porch, "HANDSHAKE_SECONDS_MAX", 0.2)
    async with opened(tls) as door:
        inside, inside_writer = await door.connect(papers.client())
        reader, writer = await door.connect(None)
        writer.write(beginning)
        with suppress(ConnectionError):
            assert await reader.read() == b""
        await hang_up(writer)
        assert door.porch.connections_refused == 1

        inside_writer.write(b"in time")
        assert await inside.readexactly(7) == b"in time", "the deadline is for handshakes alone"
        await hang_up(inside_writer)


async def test_refused_one_handshake_too_many_and_let_in_once_there_is_room(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls, waiting_max=2) as door:
        waiting = [socket.create_connection(door.address) for _ in range(2)]
        await until(lambda: door.porch.waiting == 2)
        assert "reset" in (await refusal(door, papers.client())).lower()
        for each in waiting:
            each.close()
        await until(lambda: not door.porch.waiting)
        assert await echoed(door, papers.client(), b"x") == b"x"


async def test_refused_what_was_changed_on_its_way(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        client = papers.client().wrap_bio(incoming, outgoing, server_hostname="127.0.0.1")
        reader, writer = await door.connect(None)
        await shake_hands(client, incoming, outgoing, reader, writer)
        writer.write(outgoing.read())
        client.write(b"pay 10 to anna")
        record = bytearray(outgoing.read())
        record[-1] ^= 1
        writer.write(record)
        with suppress(ConnectionError):
            while await reader.read(65_536):
                """An alert, and the end."""
        await hang_up(writer)
        assert await echoed(door, papers.client(), b"x") == b"x"
