"""A pipeline that is told to stop, perhaps together with its node."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, cast

import pytest

from sealane.pipeline import cycle
from sealane.pipeline.settings import PipelineSettings


@pytest.fixture
def stop() -> threading.Event:
    return threading.Event()


def test_a_step_that_fails_after_it_was_told_is_given_up(
    stop: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        stop.set()
        raise ConnectionError("the node is gone")

    monkeypatch.setattr(cycle, "run_cycle", fail)
    cycle.run(cast(Any, None), PipelineSettings(lake=tmp_path), stop)


def test_one_that_fails_before_is_a_failure(
    stop: threading.Event, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise ConnectionError("the node is gone")

    monkeypatch.setattr(cycle, "run_cycle", fail)
    with pytest.raises(ConnectionError):
        cycle.run(cast(Any, None), PipelineSettings(lake=tmp_path), stop)
