"""A Protobuf schema that checks payloads: they are parsed by the runtime, and nothing in them may be unknown."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from sealane.schemas.extras import protobuf
from sealane.schemas.paths import PATH_CHARS_MAX, path_of
from sealane.schemas.protobuf.shapes import refused, shapes_of
from sealane.schemas.protobuf.wire_rules import WireRules
from sealane.schemas.protobuf.wire_walk import WireWalk, Wrong
from sealane.schemas.schema import Misfit, Problem

COMPILED_BYTES_MAX = 256 << 10
"""Of a schema once it is compiled, with what it imports: four times what its text may have."""
_PROBLEMS = 100


class Parsed(NamedTuple):
    """A payload that fits."""

    message: Any
    is_whole: bool
    """Whether all of it is known. Otherwise it has numbers that may be there and are passed over."""


class ProtobufSchema:
    """Payloads are one message each, bare, without a length before it."""

    format = "protobuf"

    def __init__(self, compiled: bytes, message: str | None) -> None:
        """`compiled` is a FileDescriptorSet, whose last file is the schema. Raises `InvalidSchema`."""
        descriptors, pools, factory = protobuf()
        if len(compiled) > COMPILED_BYTES_MAX:
            raise refused(f"compiled it has {len(compiled):,} bytes, the limit is {COMPILED_BYTES_MAX:,}")
        from google.protobuf.message import DecodeError

        self._unparsable = DecodeError
        try:
            files = descriptors.FileDescriptorSet.FromString(compiled).file
            pool = pools.DescriptorPool()
            for file in files:
                pool.AddSerializedFile(file.SerializeToString())
        except (DecodeError, TypeError, ValueError) as error:
            raise refused(f"what it was compiled to cannot be read: {str(error)[:200]}") from None
        self._shapes = shapes_of(files)
        self._shape = self._shapes.find(message)
        self.message = self._shape.name
        """Its full name."""
        self.identity = compiled + b"\0" + self.message.encode()
        self.descriptor: Any = pool.FindMessageTypeByName(self.message)
        """The runtime's own."""
        self._class: Any = factory.GetMessageClass(self.descriptor)

    def check(self, payloads: Sequence[bytes]) -> Misfit | None:
        for index, payload in enumerate(payloads):
            found = self.parse(payload, index)
            if isinstance(found, Misfit):
                return found
        return None

    def parse(self, payload: bytes, index: int = 0) -> Parsed | Misfit:
        """The message that a payload is, without what is unknown in it; or why it is none, under this index."""
        try:
            message = self._class.FromString(payload)
        except self._unparsable:
            return self._first_wrong(index, payload) or Misfit(index, "$", f"it is no message {self.message}")
        if not message.IsInitialized():
            missing = message.FindInitializationErrors()
            return Misfit(index, _written(missing[0]), "it is required, and missing")
        whole = message.ByteSize()
        message.DiscardUnknownFields()
        if message.ByteSize() == whole:
            return Parsed(message, True)
        # Something is in it that the runtime could not place: of another type, or of an unknown number.
        return self._first_wrong(index, payload) or Parsed(message, False)

    def cannot_read(self, written: ProtobufSchema, *, checks: bool) -> list[Problem]:
        rules = WireRules(self._shapes, written._shapes, checks=checks)
        return list(islice(rules.messages(self._shape, written._shape), _PROBLEMS))

    def _first_wrong(self, index: int, payload: bytes) -> Misfit | None:
        try:
            WireWalk(self._shapes, payload).check(self._shape)
        except Wrong as wrong:
            return Misfit(index, path_of(wrong.steps), wrong.problem)
        return None


def _written(place: str) -> str:
    """The runtime's name of a place, which has keys of maps in it as they are."""
    plain = "".join(letter if letter.isprintable() else "?" for letter in place[:PATH_CHARS_MAX])
    return f"$.{plain}"[:PATH_CHARS_MAX]
