"""A lease as its holder has it: a short text that says what was leased, and that nobody can guess.

The node keeps nothing for it beyond the leases themselves, which are in the journal: a ticket is good for as long as
they are, also after a restart. A ticket comes back from outside: only a lease that is this secret's makes it true.
"""

from __future__ import annotations

import base64
import binascii
from typing import Annotated

import msgspec

from sealane.errors import InvalidArgument

SECRET_BYTES = 16
LEASES_MAX = 128
"""A pull has a lease for each partition and priority; what is beyond so many waits for the next one."""
TICKET_CHARS_MAX = 8_192
"""It goes into the path of a request: so many leases fit, whatever their numbers."""


Number = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]


class LeasedRun(msgspec.Struct, frozen=True, array_like=True):
    """What lies together of one lease of a partition, or all of it: everything is within [first, last]."""

    partition: Number
    lease: Number
    first: Number
    last: Number


class Ticket(msgspec.Struct, frozen=True, array_like=True):
    secret: Annotated[bytes, msgspec.Meta(min_length=SECRET_BYTES, max_length=SECRET_BYTES)]
    leases: tuple[LeasedRun, ...]

    @property
    def consumer(self) -> str:
        """To whom the messages are leased."""
        return consumer_of(self.secret)

    def text(self) -> str:
        return base64.urlsafe_b64encode(_encoder.encode(self)).rstrip(b"=").decode()

    @classmethod
    def read(cls, text: str) -> Ticket:
        """Raises `InvalidArgument` for what no node has given out."""
        try:
            if len(text) > TICKET_CHARS_MAX:
                raise ValueError
            return _decoder.decode(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
        except (ValueError, binascii.Error, msgspec.DecodeError, RecursionError):
            raise InvalidArgument("lease", "is not a lease that a pull has returned") from None


def consumer_of(secret: bytes) -> str:
    return f"pull-{secret.hex()}"


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Ticket)
