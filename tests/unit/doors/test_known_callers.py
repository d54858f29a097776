"""Who has shown the same by the same connection a moment ago is not asked again; whether it is over is asked always."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from sealane.doors.known_callers import KNOWN_MAX, KNOWN_SECONDS, KnownCallers
from sealane.errors import Unauthenticated
from sealane.node.gate import Gate
from sealane.security.introductions import Introduction
from sealane.security.principals import Principal
from tests.unit.node.running_node import running_node


class Asked:
    """Where credentials are checked."""

    def __init__(self) -> None:
        self.times = 0

    async def authenticate(self, shown: Introduction) -> Principal:
        self.times += 1
        if shown.credentials == {"key": "wrong"}:
            raise Unauthenticated("no")
        return Principal("anna")


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
async def gate(asked: Asked) -> AsyncIterator[Gate]:
    async with running_node() as running:
        yield Gate(running.node, asked.authenticate)


async def test_the_same_caller_is_asked_once(gate: Gate, asked: Asked) -> None:
    callers = KnownCallers()
    sessions = {id(await callers.session(gate, "Bearer x", Introduction())) for _ in range(5)}
    assert (len(sessions), asked.times) == (1, 1)
    await KnownCallers().session(gate, "Bearer x", Introduction())
    assert asked.times == 2, "another connection is another one"


async def test_another_credential_is_another_caller(gate: Gate, asked: Asked) -> None:
    callers = KnownCallers()
    for number in range(KNOWN_MAX):
        await callers.session(gate, f"Bearer {number}", Introduction())
    await callers.session(gate, "Bearer 0", Introduction())
    assert asked.times == KNOWN_MAX
    await callers.session(gate, None, Introduction())
    await callers.session(gate, "Bearer 0", Introduction())
    assert asked.times == KNOWN_MAX + 2, "with one too many all are forgotten"


async def test_whoever_was_refused_is_asked_again(gate: Gate, asked: Asked) -> None:
    callers = KnownCallers()
    for _ in range(2):
        with pytest.raises(Unauthenticated):
            await callers.session(gate, "Bearer wrong", Introduction({"key": "wrong"}))
    assert asked.times == 2


async def test_after_a_while_everyone_is_asked_again(gate: Gate, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    callers = KnownCallers()
    loop = asyncio.get_running_loop()
    now = 1_000.0  # A number to which seconds are added without rounding.
    monkeypatch.setattr(loop, "time", lambda: now)
    await callers.session(gate, "x", Introduction())
    monkeypatch.setattr(loop, "time", lambda: now + KNOWN_SECONDS)
    await callers.session(gate, "x", Introduction())
    assert asked.times == 1
    monkeypatch.setattr(loop, "time", lambda: now + KNOWN_SECONDS + 0.1)
    await callers.session(gate, "x", Introduction())
    assert asked.times == 2
