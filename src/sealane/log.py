"""The log: structured events, handed to Python's own logging, so that whoever runs Sealane decides where they go.

An event is a short sentence that is always the same, and fields that say of what: `log.info("a topic was created",
topic="default/orders")`. Payloads, keys, headers and secrets are never among the fields.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import structlog
from structlog.typing import EventDict

Log = structlog.stdlib.BoundLogger


class Event:
    """What a record's `msg` is: a sentence and its fields. As text it is both, so any formatter will do."""

    __slots__ = ("fields", "sentence")

    def __init__(self, sentence: str, fields: Mapping[str, Any]) -> None:
        self.sentence = sentence
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"{name}={_shown(value)}" for name, value in self.fields.items())])


def get_log(name: str) -> Log:
    """The log of one part of Sealane. It costs next to nothing where its level is off."""
    wrapped = structlog.wrap_logger(
        logging.getLogger(name),
        processors=[structlog.stdlib.filter_by_level, _as_record],
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    bound: Log = wrapped.bind()
    return bound


def _as_record(logger: Any, method: str, event: EventDict) -> tuple[tuple[Event], dict[str, Any]]:
    exc_info = event.pop("exc_info", None)
    sentence = str(event.pop("event"))
    return (Event(sentence, event),), {} if exc_info is None else {"exc_info": exc_info}


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text or not text else text
