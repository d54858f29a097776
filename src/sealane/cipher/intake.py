"""From pushed messages to stored ones: decrypted, each once, durable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey

from sealane.cipher.errors import CannotDecrypt
from sealane.cipher.hybrid import decrypt
from sealane.cipher.lines import Pushed
from sealane.cipher.received import Entry, ReceivedFile
from sealane.errors import InvalidMessage
from sealane.wire.cipher.message import EncryptedMessage


@dataclass(slots=True)
class TakenIn:
    """What became of pushed messages. Those that are in none of the lists were left alone."""

    stored: list[Entry] = field(default_factory=list)
    repeated: list[str] = field(default_factory=list)
    """The file has them already."""
    undecryptable: list[CannotDecrypt] = field(default_factory=list)

    @property
    def to_acknowledge(self) -> list[str]:
        return [*(entry.message_id for entry in self.stored), *self.repeated]


class Intake:
    """Works on a thread beside the event loop: RSA takes milliseconds a message, and so does the disk."""

    def __init__(self, key: RSAPrivateKey, received: ReceivedFile, now: Callable[[], datetime]) -> None:
        self._key = key
        self._received = received
        self._now = now

    def take(self, pushed: Sequence[Pushed], room: int | None) -> TakenIn:
        """Store what is new, up to `room` of them; durable on return. Raises what keeps the file from that."""
        taken = TakenIn()
        new: set[str] = set()
        for each in pushed:
            if each.message_id in self._received.ids or each.message_id in new:
                taken.repeated.append(each.message_id)
                continue
            if room is not None and len(new) >= room:
                continue
            try:
                body = self._body(each)
            except CannotDecrypt as error:
                taken.undecryptable.append(error)
                continue
            new.add(each.message_id)
            taken.stored.append(Entry.of(each.message_id, body, self._now()))
        if taken.stored:
            self._received.store(taken.stored)
        return taken

    def _body(self, pushed: Pushed) -> bytes:
        try:
            message = EncryptedMessage.read(pushed.text)
        except InvalidMessage as error:
            raise CannotDecrypt(pushed.message_id, f"its {error.field} {error.problem}") from None
        if message.message_id != pushed.message_id:
            raise CannotDecrypt(pushed.message_id, f"it calls itself {message.message_id}")
        return decrypt(message, self._key)
