"""The memory engine keeps the contract."""

from __future__ import annotations

import pytest

from sealane.engine import Engine
from sealane.engine.memory import MemoryEngine
from sealane.errors import StorageFull
from tests.contract.engine_suite import EngineSuite
from tests.contract.owners import ORDERS, Clock, Owner, batch


class TestMemoryEngine(EngineSuite):
    @pytest.fixture
    async def engine(self, clock: Clock) -> Engine:
        return MemoryEngine(clock)


async def test_a_memory_engine_with_a_limit_refuses_publishes_but_not_acks_until_space_is_freed() -> None:
    engine = MemoryEngine(Clock(), bytes_max=10_000)
    owner = await Owner.of(engine)
    await owner.commit(batch(bytes(6_000)))
    with pytest.raises(StorageFull) as full:
        engine.commit([Owner(engine, ORDERS, await engine.open(ORDERS)).append(batch(bytes(6_000)))])
    assert full.value.limit_bytes == 10_000
    owner = await Owner.of(engine)
    await owner.commit(None, b"ack")
    await engine.trim(ORDERS, messages_before=1)
    await owner.commit(batch(bytes(6_000)))
