"""The log is handed to Python's own logging, and costs little until somebody hears it."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest

from sealane.log import Event, get_log


def test_an_event_is_a_record_with_its_fields(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO", logger="sealane.test"):
        get_log("sealane.test").info("a topic was created", topic="default/orders", reason="as asked")

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("sealane.test", logging.INFO)
    assert record.getMessage() == "a topic was created topic=default/orders reason='as asked'"
    event: object = record.msg
    assert isinstance(event, Event)
    assert event.fields == {"topic": "default/orders", "reason": "as asked"}


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error", "critical"])
def test_an_event_has_the_level_by_which_it_is_told(caplog: pytest.LogCaptureFixture, level: str) -> None:
    log = get_log("sealane.test")
    with caplog.at_level("DEBUG", logger="sealane.test"):
        getattr(log, level)("something happened")
    with caplog.at_level(logging.CRITICAL + 1, logger="sealane.test"):
        getattr(log, level)("something else happened")

    assert [(record.levelname.lower(), record.exc_info) for record in caplog.records] == [(level, None)]


def test_an_exception_is_told_with_the_event(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("no")
    except ValueError:
        get_log("sealane.test").exception("it failed", what="this")

    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert record.exc_info[0] is ValueError


def test_a_client_that_nobody_listens_to_loads_no_library_for_its_log() -> None:
    code = (
        "import sys, sealane.client; from sealane.log import get_log; get_log('sealane').info('hello');"
        " print('structlog' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)

    assert done.stdout.strip() == "False"
