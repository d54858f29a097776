"""Handshakes take turns, so that many of them keep nobody waiting who is inside."""

from __future__ import annotations

import asyncio
from typing import cast

from sealane.doors.tls import NodeTls
from sealane.doors.tls_connection import HANDSHAKE_BYTES_MAX, TlsConnection
from sealane.doors.tls_porch import Turns
from tests.unit.doors.tls.echo_door import Echo, echoed, opened
from tests.unit.doors.tls.papers import Papers

CLIENTS = 30


class Waiting:
    """As much of a connection as stands in line."""

    def __init__(self, name: str, turns: list[str]) -> None:
        self._name = name
        self._turns = turns
        self.gone = False

    def is_closing(self) -> bool:
        return self.gone

    def have_turn(self) -> None:
        self._turns.append(self._name)


def in_line(names: str, had: list[str]) -> list[Waiting]:
    return [Waiting(name, had) for name in names]


def asked(turns: Turns, waiting: Waiting) -> bool:
    return turns.take(cast(TlsConnection, waiting))


async def test_the_first_of_a_pass_goes_on_and_the_others_one_by_one_after_it() -> None:
    had: list[str] = []
    turns = Turns()
    assert [asked(turns, each) for each in in_line("abc", had)] == [True, False, False]
    assert had == []
    await asyncio.sleep(0)
    assert had == ["b"]
    await asyncio.sleep(0)
    assert had == ["b", "c"]


async def test_who_comes_while_others_wait_is_last() -> None:
    had: list[str] = []
    turns = Turns()
    first, second, late = in_line("abc", had)
    assert asked(turns, first)
    assert not asked(turns, second)
    await asyncio.sleep(0)
    assert not asked(turns, late), "this pass was the second one's"
    await asyncio.sleep(0)
    assert had == ["b", "c"]


async def test_who_has_gone_takes_nobodys_turn() -> None:
    had: list[str] = []
    turns = Turns()
    connections = in_line("abc", had)
    for each in connections:
        asked(turns, each)
    connections[1].gone = True
    await asyncio.sleep(0)
    assert had == ["c"]


async def test_a_pass_in_which_nobody_waits_is_free_for_the_next() -> None:
    had: list[str] = []
    turns = Turns()
    first, second = in_line("ab", had)
    assert asked(turns, first)
    await asyncio.sleep(0)
    assert asked(turns, second)


async def test_of_a_stranger_no_more_is_taken_in_than_is_kept_while_others_have_their_turn(
    tls: NodeTls, papers: Papers
) -> None:
    async with opened(tls) as door:
        stranger = door.porch.connection(lambda: Echo([]))
        assert len(stranger.get_buffer(-1)) == HANDSHAKE_BYTES_MAX
        long = b"x" * (8 * HANDSHAKE_BYTES_MAX)
        assert await echoed(door, papers.client(), long) == long, "what comes after a handshake is as long as it likes"


async def test_those_who_come_together_are_all_let_in(tls: NodeTls, papers: Papers) -> None:
    async with opened(tls) as door:
        words = [f"client {number}".encode() for number in range(CLIENTS)]
        assert await asyncio.gather(*(echoed(door, papers.client(), word) for word in words)) == words
        assert door.porch.connections_refused == 0
