from __future__ import annotations

import random

from tests.fuzz.fuzz_native import run_door, run_wire
from tests.fuzz.mutated_conversation import CONVERSATION, check_wire, spoiled


def test_every_message_of_the_conversation_is_understood() -> None:
    for said in CONVERSATION:
        assert check_wire(said) == 1


def test_a_short_run_through_the_state_machine_finds_nothing_and_gets_past_the_framing() -> None:
    assert run_wire(seed=1, rounds=1_500) > 1_500


async def test_a_short_run_against_a_node_harms_neither_it_nor_a_neighbour() -> None:
    assert await run_door(seed=1, rounds=320) == 320


def test_the_same_seed_spoils_the_same_way() -> None:
    one, other = random.Random(5), random.Random(5)
    assert [spoiled(one) for _ in range(50)] == [spoiled(other) for _ in range(50)]
