"""WebSocket frames, cut into pieces as a network does: the first byte says how long those are."""

from __future__ import annotations

import random

from websockets.frames import Opcode

from sealane.doors.http.websocket.framing import Framing
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target

BYTES_MAX = 1_000


def _frame(opcode: Opcode, data: bytes, *, fin: bool = True) -> bytes:
    """As a client sends it. Its mask changes nothing, so that who spoils it finds what is inside."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else bytes([0x80 | 126]) + size.to_bytes(2, "big")
    return bytes([fin << 7 | opcode]) + length + bytes(4) + data


SEEDS = (
    b"\x07" + _frame(Opcode.TEXT, b'{"type":"ping"}') + _frame(Opcode.PING, b"x"),
    b"\x01" + _frame(Opcode.BINARY, b"\x81\xa4", fin=False) + _frame(Opcode.CONT, b"type"),
    b"\x08" + _frame(Opcode.TEXT, "é".encode()) + _frame(Opcode.CLOSE, b"\x03\xe8bye"),
)


def check(data: bytes) -> bool:
    framing = Framing(BYTES_MAX)
    size = max(1, data[0]) if data else 1
    wholes = 0
    for place in range(1, len(data), size):
        messages, _ = framing.receive(data[place : place + size])
        for message in messages:
            assert len(message.data) <= BYTES_MAX
            if message.is_text:
                message.data.decode()
        wholes += len(messages)
        framing.to_send()
    if framing.is_open:
        framing.close(1000, "good-bye")
        assert framing.to_send()[0]
    return wholes > 0


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Sometimes one frame more, which is sound."""
    if choose.random() < 0.7:
        return mutate(data, choose)
    opcode = choose.choice(list(Opcode))
    more = _frame(opcode, b"x" * choose.choice((0, 1, 125, 126, BYTES_MAX, 4_000)), fin=choose.random() < 0.7)
    return data + more if choose.random() < 0.5 else data[:1] + more + data[1:]


TARGET = Target("websocket_frames", SEEDS, check, spoil)
