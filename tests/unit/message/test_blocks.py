"""Memory that is lent, and comes back when nobody looks at it any more."""

from __future__ import annotations

import gc
import threading

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sealane.message.blocks import Blocks

LONG = 1 << 20


def address(memory: memoryview) -> int:
    return int(pa.py_buffer(memory).address)


@given(st.integers(1, 1 << 24))
def test_as_much_is_lent_as_was_asked_for_and_an_eighth_more_is_taken_at_most(length: int) -> None:
    blocks = Blocks()
    memory = blocks.take(length)
    assert len(memory) == length
    assert not memory.readonly
    assert address(memory) % 64 == 0
    del memory
    assert length <= blocks.idle_bytes <= max(length + length // 8, length + 4095)


def test_what_came_back_is_lent_again() -> None:
    blocks = Blocks()
    memory = blocks.take(LONG)
    first = address(memory)
    del memory
    assert address(blocks.take(LONG - 1_000)) == first


def test_memory_is_lent_once_at_a_time() -> None:
    blocks = Blocks()
    lent = [blocks.take(LONG) for _ in range(3)]
    for number, memory in enumerate(lent):
        memory[:] = bytes([number]) * LONG
    assert [memory[LONG // 2] for memory in lent] == [0, 1, 2]


@pytest.mark.parametrize(
    "look", [lambda memory: memory[5:9], pa.py_buffer, lambda memory: pa.py_buffer(memory).slice(9)]
)
def test_it_stays_lent_while_anything_refers_to_a_part_of_it(look: object) -> None:
    blocks = Blocks()
    memory = blocks.take(LONG)
    first = address(memory)
    part = look(memory)  # type: ignore[operator]
    del memory
    assert blocks.idle_bytes == 0
    assert address(blocks.take(LONG)) != first
    del part
    assert blocks.idle_bytes == 2 * LONG


def test_an_arrow_array_keeps_the_memory_that_it_was_made_of() -> None:
    blocks = Blocks()
    memory = blocks.take(LONG)
    memory[:8] = (7).to_bytes(8, "little")
    array = pa.Array.from_buffers(pa.int64(), 1, [None, pa.py_buffer(memory)])
    del memory
    blocks.take(LONG)[:8] = bytes(8)
    assert array.to_pylist() == [7]


def test_no_more_is_kept_than_may_be_and_what_was_used_last_stays() -> None:
    blocks = Blocks(idle_bytes_max=3 * LONG)
    older = [blocks.take(LONG) for _ in range(4)]
    older.clear()
    assert blocks.idle_bytes == 3 * LONG
    newer = blocks.take(2 * LONG)
    first = address(newer)
    del newer
    assert blocks.idle_bytes == 3 * LONG
    assert address(blocks.take(2 * LONG)) == first


def test_what_is_larger_than_all_that_is_kept_goes_back_to_the_system() -> None:
    blocks = Blocks(idle_bytes_max=LONG)
    memory = blocks.take(2 * LONG)
    assert blocks.idle_bytes == 0
    del memory
    assert blocks.idle_bytes == 0


def test_several_threads_may_take_and_let_go() -> None:
    blocks = Blocks(idle_bytes_max=64 * LONG)
    spoiled: list[int] = []

    def work(number: int) -> None:
        for round_ in range(200):
            memory = blocks.take(20_000 + 1_000 * (round_ % 7))
            memory[:] = bytes([number]) * len(memory)
            if bytes(memory) != bytes([number]) * len(memory):
                spoiled.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert not spoiled
    assert 0 < blocks.idle_bytes <= 4 * 7 * 32_768
