"""The log: structured events, handed to Python's own logging, so that whoever runs Sealane decides where they go.

An event is a short sentence that is always the same, and fields that say of what: `log.info("a topic was created",
topic="default/orders")`. Payloads, keys, headers and secrets are never among the fields.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from structlog.stdlib import BoundLogger
    from structlog.typing import EventDict


class Event:
    """What a record's `msg` is: a sentence and its fields. As text it is both, so any formatter will do."""

    __slots__ = ("fields", "sentence")

    def __init__(self, sentence: str, fields: Mapping[str, Any]) -> None:
        self.sentence = sentence
        self.fields = fields

    def __str__(self) -> str:
        return " ".join([self.sentence, *(f"{name}={_shown(value)}" for name, value in self.fields.items())])


class Log:
    """The log of one part of Sealane. It costs next to nothing where its level is off.

    Its library, which takes longer to load than the rest of a client, is loaded with the first event that is wanted.
    """

    def __init__(self, name: str) -> None:
        self._logger = logging.getLogger(name)
        self._structured: BoundLogger | None = None

    def is_heard(self, level: int) -> bool:
        """Whether events of this level, which is one of `logging`, get anywhere."""
        return self._logger.isEnabledFor(level)

    def debug(self, sentence: str, **fields: Any) -> None:
        if self.is_heard(logging.DEBUG):
            self._loaded().debug(sentence, **fields)

    def info(self, sentence: str, **fields: Any) -> None:
        if self.is_heard(logging.INFO):
            self._loaded().info(sentence, **fields)

    def warning(self, sentence: str, **fields: Any) -> None:
        if self.is_heard(logging.WARNING):
            self._loaded().warning(sentence, **fields)

    def error(self, sentence: str, **fields: Any) -> None:
        if self.is_heard(logging.ERROR):
            self._loaded().error(sentence, **fields)

    def exception(self, sentence: str, **fields: Any) -> None:
        """An error, with the exception that is being handled."""
        if self.is_heard(logging.ERROR):
            self._loaded().exception(sentence, **fields)

    def critical(self, sentence: str, **fields: Any) -> None:
        if self.is_heard(logging.CRITICAL):
            self._loaded().critical(sentence, **fields)

    def _loaded(self) -> BoundLogger:
        if self._structured is None:
            import structlog

            wrapped = structlog.wrap_logger(
                self._logger, processors=[_as_record], wrapper_class=structlog.stdlib.BoundLogger
            )
            self._structured = wrapped.bind()
        return self._structured


def get_log(name: str) -> Log:
    """The log of this name, which is that of a logger."""
    return Log(name)


def _as_record(logger: Any, method: str, event: EventDict) -> tuple[tuple[Event], dict[str, Any]]:
    exc_info = event.pop("exc_info", None)
    sentence = str(event.pop("event"))
    return (Event(sentence, event),), {} if exc_info is None else {"exc_info": exc_info}


def _shown(value: object) -> str:
    text = str(value)
    return repr(text) if " " in text or not text else text
