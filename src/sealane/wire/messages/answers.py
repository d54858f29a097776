"""What answers requests of any kind."""

from __future__ import annotations

from typing import Any

import msgspec

from sealane.wire.messages.shapes import Numbered


class Done(Numbered, tag=10):
    pass


class Answer(Numbered, tag=11):
    """What was asked for; its shape belongs to the request."""

    value: msgspec.Raw


class Refused(Numbered, tag=12):
    """The request failed. `code` and `fields` say it to programs, `text` to people; see `sealane.wire.faults`."""

    code: str
    text: str
    fields: dict[str, Any] = msgspec.field(default_factory=dict)


class Progress(Numbered, tag=13):
    """A long request goes on; `total` is 0 when unknown."""

    done: int
    total: int = 0
