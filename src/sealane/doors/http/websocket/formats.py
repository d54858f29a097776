"""The two formats: JSON in text frames, which every language has, and MessagePack in binary frames, which has bytes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from sealane.doors.http.message_shape import UNREADABLE, refusal_of
from sealane.doors.http.websocket.messages import JsonRequest, PackedRequest, Request
from sealane.node.deliveries import Delivery, Part
from sealane.node.message_json import part_json

FRAME_BYTES = 256 << 10
"""Messages are sent in frames of about this size: many clients take no frame above a megabyte. Only one that holds a
single message can be longer."""

Encode = Callable[[Any], bytes]
Shape = Callable[[Delivery, Part], list[dict[str, Any]]]


class Unreadable(Exception):
    """What came is not of this format: there is no telling what was meant, nor by which call."""


class _Outline(msgspec.Struct):
    call: int = 0


@dataclass(frozen=True, slots=True)
class Frame:
    """Messages of one delivery that go together, with their ids and offsets."""

    ids: list[bytes]
    offsets: list[int]
    messages: list[msgspec.Raw]


@dataclass(frozen=True, slots=True, eq=False)
class Format:
    subprotocol: str
    is_text: bool
    encode: Encode
    _decode: Callable[[bytes], Request]
    _decode_outline: Callable[[bytes], _Outline]
    _shape: Shape

    def read(self, data: bytes) -> Request:
        """Raises `InvalidMessage` for what is wrong in one field, and `Unreadable`."""
        try:
            return self._decode(data)
        except msgspec.ValidationError as error:
            raise refusal_of(error) from None
        except UNREADABLE:
            raise Unreadable from None

    def call_of(self, data: bytes) -> int:
        """The call of a message that is refused; 0 if it has none. Raises `Unreadable`."""
        try:
            return self._decode_outline(data).call
        except msgspec.ValidationError:
            return 0
        except UNREADABLE:
            raise Unreadable from None

    def frames(self, delivery: Delivery) -> Iterator[Frame]:
        """A delivery, in as many frames as it takes."""
        frame, size = Frame([], [], []), 0
        for part in delivery.parts:
            offsets = list(part.offsets) if isinstance(part.offsets, range) else part.offsets.tolist()
            rows = zip(part.batch.ids(), offsets, self._shape(delivery, part), strict=True)
            for identity, offset, message in rows:
                encoded = self.encode(message)
                if frame.ids and size + len(encoded) > FRAME_BYTES:
                    yield frame
                    frame, size = Frame([], [], []), 0
                frame.ids.append(identity)
                frame.offsets.append(offset)
                frame.messages.append(msgspec.Raw(encoded))
                size += len(encoded)
        if frame.ids:
            yield frame


JSON = Format(
    "sealane.v1.json",
    True,
    msgspec.json.Encoder().encode,
    msgspec.json.Decoder(JsonRequest).decode,
    msgspec.json.Decoder(_Outline).decode,
    part_json,
)
MESSAGEPACK = Format(
    "sealane.v1.msgpack",
    False,
    msgspec.msgpack.Encoder().encode,
    msgspec.msgpack.Decoder(PackedRequest).decode,
    msgspec.msgpack.Decoder(_Outline).decode,
    partial(part_json, raw=True),
)
FORMATS: Mapping[str, Format] = {each.subprotocol: each for each in (JSON, MESSAGEPACK)}
"""By subprotocol."""
