"""Where the process's log goes: one shape for Sealane's own events and for what libraries log, on standard error."""

from __future__ import annotations

import logging
import sys
from typing import Any, Literal, TextIO

import structlog
from structlog.typing import EventDict, Processor

from sealane.log import Event

LogFormat = Literal["console", "json"]
LogLevel = Literal["debug", "info", "warning", "error"]

QUIET_LIBRARIES = {"uvicorn.access": logging.WARNING, "asyncio": logging.WARNING}
"""What libraries say of every request, or of themselves, is not for an operator unless something is wrong."""


class _Handler(logging.StreamHandler[TextIO]):
    """The one that `configure_logs` put there, so that it can be found again."""


def configure_logs(format: LogFormat = "console", level: LogLevel = "info", *, stream: TextIO | None = None) -> None:
    """Send every log record of the process to standard error (or `stream`): text for people, or one JSON object a line.

    May be called again. Tracebacks never show the values of variables: those may be payloads or keys.
    """
    target = stream or sys.stderr
    handler = _Handler(target)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=[
                _unfold,
                structlog.stdlib.add_log_level,
                structlog.stdlib.add_logger_name,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                *_rendering(format, colors=target.isatty()),
            ],
        )
    )
    root = logging.getLogger()
    for before in [each for each in root.handlers if isinstance(each, _Handler)]:
        root.removeHandler(before)
    root.addHandler(handler)
    root.setLevel(level.upper())
    logging.captureWarnings(True)
    for name, quiet in QUIET_LIBRARIES.items():
        logging.getLogger(name).setLevel(logging.NOTSET if level == "debug" else quiet)
    for name in ("uvicorn", "uvicorn.error", "uvicorn.access"):
        # They come with handlers of their own, and would be printed twice.
        library = logging.getLogger(name)
        library.handlers.clear()
        library.propagate = True


def _rendering(format: LogFormat, *, colors: bool) -> list[Processor]:
    if format == "json":
        return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
    return [structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=structlog.dev.plain_traceback)]


def _unfold(logger: Any, method: str, event: EventDict) -> EventDict:
    """Give an event of ours its fields back, which any other formatter sees as text."""
    message = event["_record"].msg
    if isinstance(message, Event):
        event["event"] = message.sentence
        event.update({name: value for name, value in message.fields.items() if name not in event})
    return event
