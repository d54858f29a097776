"""Lines of the cipher door: commands, and encrypted messages in JSON. The first byte says in which pieces they come."""

from __future__ import annotations

import base64
import json
import random

from sealane.errors import SealaneError
from sealane.security.envelopes.foreign import foreign_envelope, foreign_payload
from sealane.wire.cipher import replies
from sealane.wire.cipher.commands import Publish, PublishBatch, read_command
from sealane.wire.cipher.given import Given, given, given_batch
from sealane.wire.cipher.lines import END, LineReader, Skipped
from sealane.wire.cipher.message import EncryptedMessage
from tests.fuzz.mutation import mutate
from tests.fuzz.target import Target
from tests.fuzz.trees import spoil_json

LINE_BYTES_MAX = 2_000
_WORDS = (
    b" ",
    b"\n",
    b"\r\n",
    b"publish ",
    b"publish_batch ",
    b"ack ",
    b"fetch ",
    b"{",
    b"[",
    b"\xc2\xa0",
    b"\xff",
    b"\0",
)


def _message(message_id: str) -> dict[str, str]:
    fields = {"enc_session_key": bytes(256), "nonce": bytes(12), "tag": bytes(16), "ciphertext": b"hello"}
    return {"message_id": message_id, **{name: base64.b64encode(each).decode() for name, each in fields.items()}}


_ONE, _TWO = _message("019a8f5e-7c7a-7d43-a1b2-c3d4e5f60718"), _message("order-7")
SEEDS = (
    b"\xffdeclare_queue q\ndeclare_exchange e\nbind q e k\nconsume q\nfetch q\nack order-7\n",
    b"\x10publish e k " + json.dumps(_ONE).encode() + b"\r\n",
    b"\x40publish_batch e k " + json.dumps([_ONE, _TWO]).encode() + b"\n\n",
)


def check(data: bytes) -> bool:
    size = max(1, data[0]) if data else 1
    reader = LineReader(LINE_BYTES_MAX)
    lines = [line for place in range(1, len(data), size) for line in reader.receive(data[place : place + size])]
    assert reader.kept_bytes <= LINE_BYTES_MAX
    whole = LineReader(LINE_BYTES_MAX)
    assert lines == whole.receive(data[1:]), "in pieces it says the same"
    understood = 0
    for line in lines:
        if isinstance(line, Skipped):
            continue
        assert len(line) <= LINE_BYTES_MAX
        try:
            understood += _take(line)
        except SealaneError as error:
            said = replies.error(str(error))
            assert said.count(END) == 1
            assert said.endswith(END)
    return understood > 0


def _take(line: bytes) -> bool:
    """As the door does, up to where the node begins. Raises `SealaneError`."""
    command = read_command(line)
    match command:
        case Publish():
            _check_given(given(command.text))
        case PublishBatch():
            for each in given_batch(command.text):
                _check_given(each)
    return command is not None


def _check_given(found: Given) -> None:
    assert len(found.identity) == 16
    assert replies.message(found.message_id, found.text).count(END) == 1
    message = EncryptedMessage.read(found.text)
    assert EncryptedMessage.read(message.written()) == message
    try:
        foreign_envelope(message.bytes_of("enc_session_key"))
        foreign_payload(*(message.bytes_of(name) for name in ("nonce", "ciphertext", "tag")))
    except SealaneError:
        pass  # Whoever is to read it would not know what to do with it either.


_spoil_json = spoil_json()


def spoil(data: bytes, choose: random.Random) -> bytes:
    """Mostly the JSON at the end of a line."""
    start = min((place for place in (data.find(b"{"), data.find(b"[")) if place >= 0), default=-1)
    stop = max(data.rfind(b"}"), data.rfind(b"]")) + 1
    if start < 0 or stop <= start or choose.random() < 0.4:
        return mutate(data, choose, words=_WORDS)
    return data[:start] + _spoil_json(data[start:stop], choose).replace(b"\n", b" ") + data[stop:]


TARGET = Target("cipher_lines", SEEDS, check, spoil)
