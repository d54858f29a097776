"""A conversation with a broker, a line at a time: replies and pushed messages come in between each other."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from contextlib import suppress

from sealane.cipher.errors import ConnectionLost, Refused, UnexpectedAnswer
from sealane.cipher.lines import Command, Pushed, problem_of, read_line
from sealane.log import get_log
from sealane.wire.cipher.lines import Line, LineReader, Skipped

PORT_DEFAULT = 5672
CONNECT_SECONDS = 5.0
CLOSE_SECONDS = 1.0
READ_BYTES = 1 << 16
LINE_BYTES_MAX = 16 << 20
"""Of what a broker says: a message of 1 MiB takes 1.4, and a node may be told to take larger ones."""
PUSHED_BYTES = 8 << 20
"""Of messages that were pushed and not taken: beyond it no more is read, unless somebody waits for a reply, which may
stand behind more of them."""
PUSHED_BYTES_MAX = 64 << 20
"""What comes then, beyond this, is dropped: since nobody acknowledges it, it comes again."""
PUSHED_MESSAGES_MAX = 10_000
REPLIES_MAX = 10_000
"""Replies that nobody waited for: no command has so many."""

_KEEP_ALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}
"""A receiver may hear nothing for days. A broker whose machine is gone is found out within a minute."""

log = get_log("sealane.cipher")


async def connect(host: str, port: int, *, tls: ssl.SSLContext | None = None) -> Connection:
    """To a broker, plain or by TLS. Raises `ConnectionLost` if nobody answers there, and `ssl.SSLError`."""
    address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    try:
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_connection(host, port, ssl=tls)
    except ssl.SSLError:
        raise
    except TimeoutError:
        raise ConnectionLost(f"{address} does not answer within {CONNECT_SECONDS:g} s") from None
    except (OSError, UnicodeError) as error:
        raise ConnectionLost(f"{address}: {getattr(error, 'strerror', None) or error}") from None
    _keep_alive(writer.get_extra_info("socket"))
    return Connection(reader, writer, address)


class Connection:
    """Used by one task at a time: it waits for a reply, or for messages, and meanwhile both are kept apart."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, address: str) -> None:
        self._reader = reader
        self._writer = writer
        self.address = address
        self._replies: deque[str] = deque()
        self._pushed: deque[Pushed] = deque()
        self._pushed_bytes = 0
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._awaits_reply = False
        self._over: ConnectionLost | UnexpectedAnswer | None = None
        self._reading = asyncio.create_task(self._read())

    # --- speaking -----------------------------------------------------------------------------------------------------

    async def send(self, *commands: Command) -> None:
        """That the connection was lost meanwhile is found by whoever waits for the answers."""
        self._writer.write(b"".join(command.line for command in commands))
        with suppress(OSError):
            await self._writer.drain()

    async def ask(self, command: Command, seconds: float) -> None:
        """Return when it was done. Raises `Refused`, and `ConnectionLost` if there is no answer in time."""
        try:
            async with asyncio.timeout(seconds):
                await self.send(command)
                reply = await self.reply()
        except TimeoutError:
            problem = f"{self.address} does not answer `{command.told}` within {seconds:g} s"
            raise ConnectionLost(problem) from None
        problem_told = problem_of(reply)
        if problem_told is not None:
            raise Refused(command.told, problem_told)
        if reply != command.answer:
            raise UnexpectedAnswer(f"{self.address} answers `{command.told}` with {reply[:100]!r}")

    async def reply(self) -> str:
        """The next line that is no pushed message. Raises `ConnectionLost` when there are no more."""
        self._awaits_reply = True
        self._room.set()
        try:
            await self._until(self._replies)
        finally:
            self._awaits_reply = False
        return self._replies.popleft()

    async def pushed(self, messages_max: int) -> list[Pushed]:
        """Messages that have come, at least one and in their order. Raises `ConnectionLost` when there are no more."""
        await self._until(self._pushed)
        taken = [self._pushed.popleft() for _ in range(min(messages_max, len(self._pushed)))]
        self._pushed_bytes -= sum(len(each.text) for each in taken)
        self._room.set()
        return taken

    async def close(self) -> None:
        self._reading.cancel()
        self._writer.close()
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self._writer.wait_closed()
        self._writer.transport.abort()
        await asyncio.wait([self._reading])

    # --- hearing ------------------------------------------------------------------------------------------------------

    async def _until(self, line: deque[str] | deque[Pushed]) -> None:
        while not line:
            if self._over is not None:
                raise self._over
            self._news.clear()
            await self._news.wait()

    async def _read(self) -> None:
        try:
            lines = LineReader(LINE_BYTES_MAX)
            while data := await self._more():
                for line in lines.receive(data):
                    self._hear(line)
            # A broker that shows a client out says why, and nobody may have waited for that.
            why = problem_of(self._replies[-1]) if self._replies else None
            self._over = ConnectionLost(f"{self.address} closed the connection" + (f": {why}" if why else ""))
        except UnexpectedAnswer as error:
            self._over = error
        except OSError as error:
            self._over = ConnectionLost(f"the connection to {self.address} broke: {error.strerror or error}")
        finally:
            self._news.set()

    async def _more(self) -> bytes:
        while self._pushed_bytes > PUSHED_BYTES and not self._awaits_reply:
            self._room.clear()
            await self._room.wait()
        return await self._reader.read(READ_BYTES)

    def _hear(self, line: Line) -> None:
        if isinstance(line, Skipped):
            raise UnexpectedAnswer(f"{self.address} sent a line of more than {LINE_BYTES_MAX:,} bytes")
        heard = read_line(line.rstrip(b"\r"))
        if isinstance(heard, str):
            if len(self._replies) >= REPLIES_MAX:
                raise UnexpectedAnswer(f"{self.address} sends replies to commands that nobody gave")
            self._replies.append(heard)
        elif len(self._pushed) < PUSHED_MESSAGES_MAX and self._pushed_bytes + len(heard.text) <= PUSHED_BYTES_MAX:
            self._pushed.append(heard)
            self._pushed_bytes += len(heard.text)
        else:
            log.warning("a pushed message does not fit, and will come again", message_id=heard.message_id)
        self._news.set()


def _keep_alive(found: socket.socket) -> None:
    with suppress(OSError):
        found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for name, value in _KEEP_ALIVE.items():
            if hasattr(socket, name):
                found.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
