"""Crashes that a test plants, and what is seen of them."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from sealane.client.lane import Lane
from sealane.errors import StorageFailed
from sealane.log import Event
from sealane.node import Node
from sealane.node.status import health
from tests.unit.node.running_node import DEADLINE_SECONDS


class Planted(Exception):
    """What nobody expects."""


def crash_once(monkeypatch: pytest.MonkeyPatch, target: type, name: str) -> None:
    """The next call of this method crashes; those after it work."""
    original = getattr(target, name)

    def crashing(*args, **kwargs):
        monkeypatch.setattr(target, name, original)
        raise Planted(name)

    monkeypatch.setattr(target, name, crashing)


def crash_always(monkeypatch: pytest.MonkeyPatch, target: type, name: str) -> None:
    def crashing(*args, **kwargs):
        raise Planted(name)

    monkeypatch.setattr(target, name, crashing)


def crash_was_logged(caplog: pytest.LogCaptureFixture, task: str) -> bool:
    for record in caplog.records:
        event: Any = record.msg
        if record.levelno == logging.ERROR and isinstance(event, Event) and event.sentence == "a task crashed":
            error = record.exc_info[1] if record.exc_info else None
            if event.fields["task"] == task and isinstance(error, Planted):
                return True
    return False


async def expect_stopped(node: Node, lane: Lane, task: str) -> None:
    async with asyncio.timeout(DEADLINE_SECONDS):
        assert isinstance(await node.supervisor.failed(), Planted)
    assert node.supervisor.failed_task == task
    state = health(node)
    assert (state.live, state.ready) == (False, False)
    assert task in state.problems[0]
    with pytest.raises(StorageFailed):
        await lane.publish("orders", b"refused")
