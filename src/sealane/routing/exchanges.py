"""Exchanges: from a routing key to topics.

A *direct* exchange routes to the bindings whose pattern is the key, a *fanout* exchange to all of them, and a *topic*
exchange to those whose pattern matches the key's dot-separated words: `*` stands for one word, `#` for any number of
them, none included. An exchange is a value: binding and unbinding make a new one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec

from sealane.errors import FormatTooNew, InvalidArgument

ExchangeKind = Literal["direct", "topic", "fanout"]

ROUTING_KEY_BYTES_MAX = 1024
"""A routing key or a pattern, in UTF-8: as long as a message's key."""
BINDINGS_MAX = 10_000
"""Bindings of one exchange: each is looked at for every publish through a topic exchange."""

_FORMAT = 1


class Binding(msgspec.Struct, frozen=True, array_like=True):
    """What matches `pattern` goes to `topic`."""

    pattern: str
    topic: str


class Exchange(msgspec.Struct, frozen=True, array_like=True):
    """A set of bindings and the way to match them."""

    kind: ExchangeKind
    bindings: tuple[Binding, ...] = ()

    def bind(self, pattern: str, topic: str) -> Exchange:
        """The exchange with one more binding, at the end; the same exchange if it has it already."""
        _check_text("pattern", pattern)
        binding = Binding(pattern, topic)
        if binding in self.bindings:
            return self
        if len(self.bindings) >= BINDINGS_MAX:
            raise InvalidArgument("pattern", f"the exchange has {BINDINGS_MAX:,} bindings already, which is the limit")
        return Exchange(self.kind, (*self.bindings, binding))

    def unbind(self, pattern: str, topic: str) -> Exchange:
        """The exchange without that binding; the same exchange if it has none such."""
        binding = Binding(pattern, topic)
        if binding not in self.bindings:
            return self
        return Exchange(self.kind, tuple(kept for kept in self.bindings if kept != binding))

    def route(self, routing_key: str) -> tuple[str, ...]:
        """The topics this key goes to, in the order of binding, each once. Empty: it is unroutable."""
        _check_text("routing_key", routing_key)
        if self.kind == "fanout":
            topics = [binding.topic for binding in self.bindings]
        elif self.kind == "direct":
            topics = [binding.topic for binding in self.bindings if binding.pattern == routing_key]
        else:
            words = routing_key.split(".")
            topics = [binding.topic for binding in self.bindings if _matches(binding.pattern.split("."), words)]
        return tuple(dict.fromkeys(topics))

    def to_bytes(self) -> bytes:
        return msgspec.msgpack.encode((_FORMAT, self))

    @classmethod
    def from_bytes(cls, data: bytes) -> Exchange:
        """What `to_bytes` made; `FormatTooNew` or `InvalidArgument` for anything else."""
        try:
            version, body = msgspec.msgpack.decode(data, type=tuple[int, msgspec.Raw])
            if version > _FORMAT:
                raise FormatTooNew("the exchange", version, _FORMAT)
            return msgspec.msgpack.decode(body, type=cls)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InvalidArgument("exchange", f"its stored form cannot be read: {error}") from None


def _check_text(argument: str, text: str) -> None:
    if not isinstance(text, str):
        raise InvalidArgument(argument, f"is a {type(text).__name__}; give text")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidArgument(argument, "cannot be written as UTF-8") from None
    if size > ROUTING_KEY_BYTES_MAX:
        raise InvalidArgument(argument, f"is {size:,} bytes, the limit is {ROUTING_KEY_BYTES_MAX:,}")


def _matches(pattern: Sequence[str], words: Sequence[str]) -> bool:
    """Whether the words fit the pattern, in at most len(pattern) × len(words) steps.

    On a mismatch only the last `#` takes one word more: what an earlier one could take instead, the last one can too,
    so there is no need to go back further.
    """
    at_pattern = at_word = 0
    hash_at = resume_at = -1
    while at_word < len(words):
        part = pattern[at_pattern] if at_pattern < len(pattern) else None
        if part == "#":
            hash_at, resume_at = at_pattern, at_word
            at_pattern += 1
        elif part == "*" or part == words[at_word]:
            at_pattern += 1
            at_word += 1
        elif hash_at >= 0:
            resume_at += 1
            at_pattern, at_word = hash_at + 1, resume_at
        else:
            return False
    return all(part == "#" for part in pattern[at_pattern:])
